// Before anything is painted, and so no module: the scheme that the user chose.
try {
  const kept = localStorage.getItem("lessons.theme");
  if (kept === "dark" || kept === "light") document.documentElement.dataset.theme = kept;
} catch {
  // the browser keeps nothing: the scheme of the system
}

// What is pressed before the page's scripts have run is pressed once they have. Where a form names an
// address, the browser sends it without them.
{
  let pressed;
  const early = (event) => {
    const control = event.target.closest("button, [data-c]");
    if (!control || control.form?.hasAttribute("action") || event.ctrlKey || event.metaKey) return;
    pressed = control;
    event.preventDefault();
    event.stopPropagation();
  };
  addEventListener("click", early, true);
  addEventListener("DOMContentLoaded", () => {
    removeEventListener("click", early, true);
    pressed?.click();
  });
}
