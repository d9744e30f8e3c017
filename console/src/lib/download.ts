const keptMs = 60_000;

export function download(fileName: string, text: string, type: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = fileName;
  link.click();
  // A browser reads the text after the click; how long after, none promises.
  setTimeout(() => URL.revokeObjectURL(url), keptMs);
}
