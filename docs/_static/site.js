// Tables sort by a click on a column's head; the form .filters hides rows of other frameworks and lanes; the form .choices
// picks a table; and what the theme leaves out for keyboards and screen readers.

const UNITS = { "µs": 1e-6, ms: 1e-3, s: 1, M: 1e6, G: 1e9 };

function value(cell, numbers) {
  const text = cell.textContent.trim();
  if (!numbers) return text.toLowerCase();
  if (text.startsWith(">")) return Infinity; // not even at the largest size
  const found = text.replace(/,/g, "").match(/(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)\s*(\S*)/);
  if (!found) return text ? NaN : null;
  return parseFloat(found[1]) * (UNITS[found[2]] ?? 1);
}

// Words in a column of numbers, as "refused", come after the numbers, and empty cells last, in both directions.
function rank(value) {
  if (value === null || value === "") return 2;
  return Number.isNaN(value) ? 1 : 0;
}

function sort(table, column, descending) {
  const numbers = table.tHead.rows[0].cells[column].classList.contains("r");
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => [value(row.cells[column], numbers), row]);
  rows.sort(([a], [b]) => {
    if (rank(a) || rank(b)) return rank(a) - rank(b);
    const order = numbers ? a - b : a.localeCompare(b);
    return descending ? -order : order;
  });
  body.append(...rows.map(([, row]) => row));
}

function sortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  if (!heads.some((head) => head.classList.contains("r"))) return; // sentences have no order
  heads.forEach((head, column) => {
    if (!head.textContent.trim()) return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const descending = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      sort(table, column, descending);
    });
  });
}

function filter(form) {
  const wanted = [...form.elements].filter((field) => field.value).map((field) => [field.name, field.value]);
  document.querySelectorAll("tr[data-framework]").forEach((row) => {
    // NumPy's row stays: all others are compared with it.
    row.hidden = row.dataset.framework !== "NumPy" && wanted.some(([name, choice]) => row.dataset[name] !== choice);
  });
}

// One section of .choice is shown: that of what the form .choices says.
function choose(form) {
  const wanted = [...form.elements].map((field) => [field.name, field.value]);
  document.querySelectorAll(".choice").forEach((each) => {
    each.hidden = !wanted.every(([name, value]) => each.dataset[name].split(" or ").includes(value));
  });
}

// Also after Back, when the browser has restored the form.
window.addEventListener("pageshow", () => document.querySelectorAll("form.filters").forEach(filter));

window.addEventListener("load", () => {
  document.querySelectorAll("button.copybtn").forEach((each) => each.setAttribute("aria-label", "Copy"));
});

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("[role=heading]:not([aria-level])").forEach((each) => each.setAttribute("aria-level", "2"));
  // These scroll sideways.
  document.querySelectorAll("pre, .table-wrapper, .wide").forEach((each) => each.setAttribute("tabindex", "0"));
  if (location.protocol === "file:") { // from which a browser lets no script read pages
    const note = Object.assign(document.createElement("p"), { className: "note" });
    note.textContent = "In a site that is opened from a folder, the search shows titles without excerpts.";
    document.getElementById("search-results")?.before(note);
  }
  document.querySelector("aside.sidebar-drawer")?.setAttribute("aria-label", "Pages");
  document.querySelector("aside.toc-drawer")?.setAttribute("aria-label", "On this page");
  document.querySelectorAll(".scroll table").forEach(sortable);
  document.querySelectorAll("form.filters").forEach((form) => form.addEventListener("change", () => filter(form)));
  document.querySelectorAll("form.choices").forEach((form) => form.addEventListener("change", () => choose(form)));
});
