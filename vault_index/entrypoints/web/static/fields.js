// The fields of a lesson in a form, as its frontmatter has them.

// Return the values by name: lists of lines, numbers, whether a box is checked, texts.
export function valuesOf(form) {
  const values = {};
  for (const field of form.elements) {
    if (!field.name) continue;
    const lines = field.value.split("\n").map((line) => line.trim());
    if (field.type === "checkbox") values[field.name] = field.checked;
    else if ("lines" in field.dataset) values[field.name] = lines.filter(Boolean);
    else values[field.name] = "number" in field.dataset ? Number(field.value) : field.value;
  }
  return values;
}

// Return the values that are others than before.
export function changesOf(form, before) {
  const isSame = (some, other) => JSON.stringify(some) === JSON.stringify(other);
  const now = Object.entries(valuesOf(form));
  return Object.fromEntries(now.filter(([name, value]) => !isSame(value, before[name])));
}
