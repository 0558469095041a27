"""As Django has them, with one way of writing hours."""

DATE_FORMAT = "j E Y г."
TIME_FORMAT = "H:i"
DATETIME_FORMAT = "j E Y г., H:i"
SHORT_DATE_FORMAT = "d.m.Y"
SHORT_DATETIME_FORMAT = "d.m.Y, H:i"
