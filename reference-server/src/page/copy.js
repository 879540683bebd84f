// Buttons that copy the text of another element.
for (const button of document.querySelectorAll("button[data-copy]")) {
  if (!navigator.clipboard) break;
  button.hidden = false;
  button.addEventListener("click", async () => {
    const source = document.getElementById(button.dataset.copy);
    if (!source) return;
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = button.dataset.done;
    } catch {
      // The browser does not permit it: the text is selected, to be copied by hand.
      getSelection()?.selectAllChildren(source);
    }
  });
}
