// Buttons that copy the text of another element.

function enableCopy(button, source) {
  const label = button.textContent;
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(source.textContent);
    } catch {
      // The browser does not permit it: the text is selected, to be copied by hand.
      getSelection()?.selectAllChildren(source);
      return;
    }
    button.textContent = button.dataset.done;
    setTimeout(() => {
      button.textContent = label;
    }, 2500);
  });
}

for (const button of document.querySelectorAll("button[data-copy]")) {
  const source = document.getElementById(button.dataset.copy);
  if (navigator.clipboard && source) enableCopy(button, source);
}
