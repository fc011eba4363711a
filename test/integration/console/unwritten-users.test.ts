/** Users of the console whose file cannot be written: nobody has a key that opens something. */
import { cpSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, it } from "@jest/globals";
import {
  runAddConsoleUser,
  runListConsoleUsers,
  runRemoveConsoleUser,
  runResetConsoleUser,
} from "../../../cli/commands/console-users.js";
import type { LedgerCommand } from "../../../cli/ledger/ledger-tools.js";
import { readUser } from "../../../console/users/user-files.js";
import { listApiKeys } from "../../../ledger/access/api-keys.js";
import { House, WALLET } from "../../helpers/exchange/house.js";
import { freshFile } from "../../helpers/keys/signing.js";

const CHEAP = { n: 16, r: 1, p: 1 };

let house: House;
let home: string;

beforeAll(async () => {
  house = await House.withAlice(1n);
});
afterAll(() => house.close());

beforeEach(() => {
  home = dirname(freshFile("x"));
  mkdirSync(join(home, "config"));
  writeFileSync(join(home, "config", "hot-wallet.json"), JSON.stringify({ address: WALLET }));
});

const command = (): LedgerCommand => ({
  home,
  portOffset: 0,
  json: false,
  env: { DATABASE_URL: house.ledger.owner.url },
  signal: house.signal,
  print: () => undefined,
});

/** A console's home that can be read and not written: a name beside a user's file would be too long. */
function unwritableHome(): string {
  let folder = join(home, "console");
  while (folder.length < 4_030) {
    folder = join(folder, "d".repeat(Math.min(200, 4_040 - folder.length)));
  }
  mkdirSync(folder, { recursive: true });
  return folder;
}

/** The keys of a console's user that open something, oldest first. */
async function goodKeys(name: string): Promise<readonly string[]> {
  const keys = await listApiKeys(house.database);
  const own = keys.filter((key) => key.name === `console ${name}`);
  return own.filter(({ revokedAt }) => revokedAt === undefined).map(({ id }) => id);
}

it("leaves no key of a user who could not be added", async () => {
  const user = { name: "ann", role: "admin", consoleHome: unwritableHome(), cost: CHEAP };
  await expect(runAddConsoleUser(command(), user)).rejects.toMatchObject({
    code: "HOME_UNUSABLE",
  });
  expect(await goodKeys("ann")).toEqual([]);
});

it("leaves a user who could not be reset with the key of before", async () => {
  await runAddConsoleUser(command(), { name: "ben", role: "admin", cost: CHEAP });
  const consoleHome = unwritableHome();
  cpSync(join(home, "data"), join(consoleHome, "data"), { recursive: true });
  const again = { name: "ben", consoleHome, cost: CHEAP };
  await expect(runResetConsoleUser(command(), again)).rejects.toMatchObject({
    code: "HOME_UNUSABLE",
  });
  expect(await goodKeys("ben")).toEqual([readUser(consoleHome, "ben")?.keyId]);
});

it("leaves no key at all where the home fails behind the former key's end", async () => {
  await runAddConsoleUser(command(), { name: "cleo", role: "admin", cost: CHEAP });
  const folder = join(home, "data", "console", "users");
  // Asked for when the new key is made.
  const options = Object.defineProperty({ name: "cleo" }, "cost", {
    enumerable: true,
    get: () => {
      renameSync(folder, `${folder}-away`);
      writeFileSync(folder, "");
      return CHEAP;
    },
  });
  await expect(runResetConsoleUser(command(), options)).rejects.toMatchObject({
    code: "HOME_UNUSABLE",
  });
  expect(await goodKeys("cleo")).toEqual([]);
});

it("lets a user whose file is damaged be seen, removed and added again, beside others", async () => {
  const lines: string[] = [];
  const shown = { ...command(), print: (line: string) => void lines.push(line) };
  for (const name of ["dora", "emil"]) {
    await runAddConsoleUser(command(), { name, role: "viewer", cost: CHEAP });
  }
  const file = join(home, "data", "console", "users", "dora.json");
  writeFileSync(file, "");
  runListConsoleUsers(shown, {});
  expect(lines).toEqual([
    expect.stringMatching(/^emil {2}viewer/),
    expect.stringMatching(/^dora /),
  ]);
  const remedy = "causeway console user remove, then add";
  await expect(runResetConsoleUser(command(), { name: "dora" })).rejects.toThrow(remedy);
  await runRemoveConsoleUser(shown, { name: "dora" });
  expect(lines.at(-1)).toContain('causeway keys list shows it as "console dora"');
  await runAddConsoleUser(command(), { name: "dora", role: "admin", cost: CHEAP });
  expect(readUser(home, "dora")?.role).toBe("admin");
});
