"""The product's settings for workers under test, but for one: who waits for a connection gives up after two seconds.

Otherwise every thread that has a reply to write down waits twenty of them for a database that was killed.
"""

from config.settings import *  # noqa: F403
from config.settings import DATABASES

DATABASES["default"]["OPTIONS"]["pool"]["timeout"] = 2
