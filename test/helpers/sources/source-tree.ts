/** The product's own sources and their imports, read as text. */
import fs from "node:fs";
import path from "node:path";

/** Folders of the product; tests are not among them. */
export const PRODUCT_FOLDERS = [
  "chain",
  "runtime",
  "rpc-client",
  "node",
  "sidecar",
  "web",
  "explorer",
  "console",
  "deposit-watcher",
  "withdrawal-worker",
  "indexer",
  "ledger",
  "cli",
] as const;

/** One source file. */
export interface SourceFile {
  /** Path from the root, with slashes. */
  readonly path: string;
  readonly text: string;
  /** Paths of own files it imports (type imports included). */
  readonly imports: readonly string[];
  /** Names of packages it imports, without sub-paths; node: built-ins left out. */
  readonly packages: readonly string[];
}

const IMPORT = /(?:from|import)\s*\(?\s*["']([^"']+)["']/g;

function filesBelow(folder: string): string[] {
  if (!fs.existsSync(folder)) return [];
  return fs.readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const child = path.posix.join(folder, entry.name);
    if (entry.isDirectory()) return filesBelow(child);
    return entry.name.endsWith(".ts") && !entry.name.endsWith(".d.ts") ? [child] : [];
  });
}

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/^\s*\/\/.*$/gm, "");
}

/** Reads one file. */
export function readSource(file: string): SourceFile {
  const text = fs.readFileSync(file, "utf8");
  const imports: string[] = [];
  const packages: string[] = [];
  for (const match of withoutComments(text).matchAll(IMPORT)) {
    const target = match[1] ?? "";
    if (target.startsWith(".")) {
      const joined = path.posix.join(path.posix.dirname(file), target);
      imports.push(joined.replace(/\.js$/, ".ts"));
    } else if (!target.startsWith("node:")) {
      const parts = target.split("/");
      packages.push(target.startsWith("@") ? parts.slice(0, 2).join("/") : (parts[0] ?? ""));
    }
  }
  return { path: file, text, imports, packages };
}

/** All product sources. */
export function productSources(): SourceFile[] {
  return PRODUCT_FOLDERS.flatMap(filesBelow).map(readSource);
}

/** All that tests are made of, the benchmark left out. */
export function testSources(): SourceFile[] {
  const files = filesBelow("test").filter(
    (file) => !/^test\/(bench|fixtures|foundry)\//.test(file),
  );
  return files.map(readSource);
}
