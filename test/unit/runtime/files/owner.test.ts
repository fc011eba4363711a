/** What root writes into a home of another user stays that user's; in a home of root's, root's. */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect } from "@jest/globals";
import { createHomeFolders, createSecretFolder, homePaths } from "../../../../cli/home/home.js";
import { createNamedFile } from "../../../../cli/home/home-file.js";
import {
  createFileOnce,
  exchangeFile,
  PLAIN_MODE,
  replaceFile,
  SECRET_MODE,
} from "../../../../runtime/files/durable-file.js";
import { ensureFolder } from "../../../../runtime/files/folder.js";
import { itForRoot } from "../../../helpers/processes/for-root.js";
import { compiledFolder } from "../../../helpers/services/services.js";

const forRoot = itForRoot();

/** Of the home, and of one file in it that somebody else has. */
const HOME_UID = 1_234_567;
const FILE_UID = 1_234_568;

let home: string;
const at = (name: string) => join(home, name);

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "causeway-owner-"));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const ownerOf = (name: string) => {
  const { uid, gid, mode } = statSync(at(name));
  return [uid, gid, (mode & 0o777).toString(8)];
};

/** Every way in which a file or a folder of a home is made. */
async function writeAll(): Promise<void> {
  await replaceFile(at("new"), "x", SECRET_MODE);
  await replaceFile(at("theirs"), "x", PLAIN_MODE);
  createFileOnce(at("once"), "x", SECRET_MODE);
  await exchangeFile(at("exchanged"), () => true, { content: "x", mode: SECRET_MODE });
  await exchangeFile(at("lost"), () => true, { content: "x", mode: SECRET_MODE });
  ensureFolder(at("data/deep"));
  await createHomeFolders(homePaths(home));
  await createSecretFolder(at("config/wallets"));
  await replaceFile(at("config/wallets/hot.json"), "x", SECRET_MODE);
}

forRoot("files and folders are given to whoever has the file before, or the folder", async () => {
  for (const name of ["theirs", "exchanged"]) writeFileSync(at(name), "before");
  for (const name of ["theirs", "exchanged"]) chownSync(at(name), FILE_UID, FILE_UID);
  mkdirSync(at("config"));
  chownSync(at("config"), HOME_UID, HOME_UID);
  chownSync(home, HOME_UID, HOME_UID);
  await writeAll();
  const secret = [HOME_UID, HOME_UID, "600"];
  const folder = [HOME_UID, HOME_UID, "700"];
  expect(ownerOf("new")).toEqual(secret);
  expect(ownerOf("once")).toEqual(secret);
  expect(ownerOf("lost")).toEqual(secret);
  expect(ownerOf("theirs")).toEqual([FILE_UID, FILE_UID, "644"]);
  expect(ownerOf("exchanged")).toEqual([FILE_UID, FILE_UID, "600"]);
  expect(ownerOf("data")).toEqual(folder);
  expect(ownerOf("data/deep")).toEqual(folder);
  expect(ownerOf("config/wallets")).toEqual(folder);
  expect(ownerOf("logs")).toEqual(folder);
  expect(ownerOf("config/wallets/hot.json")).toEqual(secret);
});

forRoot("what a person names is that person's, whoever has the folder", async () => {
  chownSync(home, HOME_UID, HOME_UID);
  expect(await createNamedFile(at("key"), "x", SECRET_MODE)).toBe(true);
  expect(ownerOf("key")).toEqual([0, 0, "600"]);
});

forRoot("a home of root's stays root's, and so does a file of root's in another home", async () => {
  mkdirSync(at("config"));
  await writeAll();
  for (const name of ["new", "once", "exchanged", "config/wallets/hot.json"]) {
    expect(ownerOf(name)).toEqual([0, 0, "600"]);
  }
  for (const name of ["data/deep", "config/wallets"]) expect(ownerOf(name)).toEqual([0, 0, "700"]);
  chownSync(home, HOME_UID, HOME_UID);
  await replaceFile(at("new"), "x", SECRET_MODE);
  expect(ownerOf("new")).toEqual([0, 0, "600"]);
});

/** Starts a program as a root that may give files away and nothing else, as in a container with few rights. */
const AS_ROOT_THAT_GIVES = ["setpriv", "--bounding-set=-all,+chown", "--inh-caps=-all"] as const;

function runAsRootThatGives(program: string): string {
  const [command, ...words] = AS_ROOT_THAT_GIVES;
  const { stdout, stderr } = spawnSync(
    command,
    [...words, process.execPath, "--input-type=module", "--eval", program],
    { encoding: "utf8" },
  );
  return `${stdout}${stderr}`;
}

itForRoot([...AS_ROOT_THAT_GIVES, "true"])(
  "a root without other rights than to give gives last what it made",
  async () => {
    const module = join(await compiledFolder(), "runtime", "files", "durable-file.js");
    writeFileSync(at("exchanged"), "before");
    chownSync(at("exchanged"), FILE_UID, FILE_UID);
    chownSync(home, HOME_UID, HOME_UID);
    // It may write there as anybody may.
    chmodSync(home, 0o777);
    const said = runAsRootThatGives(`
    import { createFileOnce, exchangeFile, replaceFile } from ${JSON.stringify(module)};
    await replaceFile(${JSON.stringify(at("new"))}, "x", ${SECRET_MODE});
    createFileOnce(${JSON.stringify(at("once"))}, "x", ${SECRET_MODE});
    const exchanged = { content: "x", mode: ${SECRET_MODE} };
    console.log(await exchangeFile(${JSON.stringify(at("exchanged"))}, () => true, exchanged));
  `);
    expect(said).toBe("true\n");
    for (const name of ["new", "once"]) expect(ownerOf(name)).toEqual([HOME_UID, HOME_UID, "600"]);
    expect(ownerOf("exchanged")).toEqual([FILE_UID, FILE_UID, "600"]);
  },
);
