/** Files that are replaced whole: the old content or the new one, also after a power cut. */
import { open, rename } from "node:fs/promises";
import path from "node:path";

/** Replaces a file's content; it is on disk, its name included, when the promise resolves. */
export async function replaceFile(file: string, content: string | Uint8Array): Promise<void> {
  const draft = `${file}.new`;
  const handle = await open(draft, "w", 0o600);
  try {
    await handle.writeFile(content);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(draft, file);
  const folder = await open(path.dirname(file), "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
