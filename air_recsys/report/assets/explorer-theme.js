"use strict";

/** Light or dark: as the system has it, until the button says otherwise. */
function startTheme(onChange) {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const apply = (isDark) => {
    document.documentElement.dataset.theme = isDark ? "dark" : "light";
    byId("theme").setAttribute("aria-pressed", String(isDark));
    onChange();
  };
  dark.addEventListener("change", () => apply(dark.matches));
  byId("theme").addEventListener("click", () => apply(document.documentElement.dataset.theme !== "dark"));
  apply(dark.matches);
}
