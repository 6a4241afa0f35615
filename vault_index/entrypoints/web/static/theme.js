// Before anything is painted, and so no module: the scheme that the user chose.
try {
  const kept = localStorage.getItem("lessons.theme");
  if (kept === "dark" || kept === "light") document.documentElement.dataset.theme = kept;
} catch {
  // the browser keeps nothing: the scheme of the system
}
