// Filters on the index and the pages; nothing is loaded from anywhere.
const rows = [...document.querySelectorAll("table.runs tbody tr")];
const selects = [...document.querySelectorAll("select[data-column]")];
const search = document.querySelector("[data-search]");
const count = document.querySelector("[data-count]");

function filterRuns() {
  const words = search.value.toLowerCase().split(/\s+/);
  for (const row of rows) {
    const chosen = selects.every((select) => !select.value || row.dataset[select.dataset.column] === select.value);
    row.hidden = !(chosen && words.every((word) => row.textContent.toLowerCase().includes(word)));
  }
  count.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length}`;
}

if (search) {
  for (const input of [...selects, search]) input.addEventListener("input", filterRuns);
  filterRuns();
}

document.querySelector("[data-only-failed]")?.addEventListener("input", (event) => {
  for (const row of document.querySelectorAll("table.checks tbody tr")) {
    row.hidden = event.target.checked && row.dataset.state === "passed";
  }
});
