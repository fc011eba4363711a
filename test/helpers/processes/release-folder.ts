/** Folders of releases for `causeway upgrade`: of a few lines, or a copy of the compiled product that knows more. */
import fs from "node:fs";
import path from "node:path";
import { NEWEST_APP_VERSION } from "../../../node/settings/app-version.js";
import { compiledFolder } from "../services/services.js";

/** The clone, whose packages copies use. */
const ROOT = process.cwd();

/** What an installed and built clone has beside its program. */
function writeClone(folder: string): void {
  fs.mkdirSync(path.join(folder, "dist", "cli"), { recursive: true });
  writeManifest(folder);
  fs.writeFileSync(path.join(folder, "dist", ".stamp"), "of these sources");
}

/** Writes package.json of a release. @param more fields beside those that it needs */
export function writeManifest(folder: string, more: object = {}): void {
  const manifest = { name: "causeway", type: "module", ...more };
  fs.writeFileSync(path.join(folder, "package.json"), JSON.stringify(manifest));
}

/** A release whose program only answers which upgrades it knows. @param answer what it prints */
export function writeSmallRelease(folder: string, answer: unknown): void {
  writeClone(folder);
  fs.mkdirSync(path.join(folder, "node_modules"), { recursive: true });
  fs.writeFileSync(path.join(folder, "node_modules", ".package-lock.json"), "{}");
  const program = `if (process.argv.slice(2).join(" ") !== "upgrade known --json") {
    console.error("error: unknown command 'upgrade'");
    process.exit(1);
  }
  console.log(${JSON.stringify(JSON.stringify(answer))});
`;
  fs.writeFileSync(path.join(folder, "dist", "cli", "main.js"), program);
}

/** A copy of the compiled product that knows one upgrade more, which changes nothing but the rules' version. */
export async function copyReleaseKnowing(folder: string, name: string): Promise<void> {
  const dist = path.join(folder, "dist");
  fs.cpSync(await compiledFolder(), dist, { recursive: true });
  // Else the copy would take its program's folder for the clone.
  fs.rmSync(path.join(dist, "package.json"));
  writeClone(folder);
  fs.symlinkSync(path.join(ROOT, "node_modules"), path.join(folder, "node_modules"));
  const known = JSON.stringify({ name, appVersion: NEWEST_APP_VERSION + 1 });
  fs.appendFileSync(
    path.join(dist, "node", "settings", "app-version.js"),
    `\nKNOWN_UPGRADES.push(${known});\n`,
  );
  const handlers = path.join(dist, "node", "modules", "upgrade", "upgrades.js");
  const text = fs.readFileSync(handlers, "utf8");
  const change = "CHANGES[known.name]";
  if (!text.includes(change)) throw new Error(`${handlers} has no ${change}`);
  fs.writeFileSync(handlers, text.replace(change, `${change} ?? (() => undefined)`));
}
