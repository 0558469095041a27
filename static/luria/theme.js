// Light or dark by the system's setting; Bootstrap wants it as an attribute.
const dark = matchMedia("(prefers-color-scheme: dark)");
const paint = () => document.documentElement.setAttribute("data-bs-theme", dark.matches ? "dark" : "light");
dark.addEventListener("change", paint);
paint();
