/**
 * `causeway console user ...`: who may use the operator console. A user is an API key of the ledger with
 * the scopes of a role, sealed with a password that is shown once and replaced at the first login.
 */
import { resolve } from "node:path";
import {
  type ConsoleUser,
  createUser,
  hasUsers,
  isUserName,
  listUnreadableUsers,
  listUsers,
  lookForUser,
  readUser,
  removeUser,
  replaceUser,
} from "../../console/users/user-files.js";
import { CONSOLE_ROLES, type ConsoleRole, parseRole, scopesOf } from "../../console/users/roles.js";
import {
  newPassword,
  PASSWORD_COST,
  type PasswordCost,
  sealKey,
} from "../../console/users/sealed-key.js";
import { createApiKey, findRevokedKey, revokeApiKey } from "../../ledger/access/api-keys.js";
import { LedgerError } from "../../ledger/errors.js";
import type { SqlDatabase } from "../../runtime/sql/sql.js";
import { cannotWrite, CliError, sentenceOf, systemCode } from "../errors.js";
import { createNamedFile, SECRET_MODE } from "../home/home-file.js";
import { withLedgerAlone } from "../ledger/ledger-alone.js";
import { toJson } from "../command-context.js";
import type { LedgerCommand } from "../ledger/ledger-tools.js";

/** Flags that the commands share, as typed. */
export interface ConsoleUserOptions {
  /** Home of a console that runs apart; else the command's own. */
  readonly consoleHome?: string;
  /** File that takes the password instead of the terminal. */
  readonly out?: string;
  /** Cost of the password; tests make it cheap. */
  readonly cost?: PasswordCost;
}

/** Name of the user that a new home gets. */
const FIRST_USER = "admin";

/** `console user add NAME --role ROLE`. */
export async function runAddConsoleUser(
  command: LedgerCommand,
  options: ConsoleUserOptions & { readonly name: string; readonly role: string },
): Promise<number> {
  const { name } = options;
  const role = parseRole(options.role);
  if (role === undefined) {
    throw new CliError("USAGE", `--role is one of ${CONSOLE_ROLES.join(", ")}.`);
  }
  const home = homeOf(command, options);
  if (!isUserName(name)) {
    const allowed = "a lower-case letter, then letters, digits, - and _, 32 in all";
    throw new CliError("USAGE", `NAME takes ${allowed}.`);
  }
  if (readUser(home, name) !== undefined) {
    throw new CliError("USAGE", `${name} is there already: causeway console user reset ${name}.`);
  }
  return withLedgerAlone(command, async ({ database }) => {
    const password = await addUser(database, { ...options, home, name, role });
    return tell(command, options, { name, role, password });
  });
}

/**
 * `console user reset NAME`: another password and another key; the former key opens nothing more, and whoever
 * has decided with it does not decide a second time.
 */
export async function runResetConsoleUser(
  command: LedgerCommand,
  options: ConsoleUserOptions & { readonly name: string },
): Promise<number> {
  const { name } = options;
  const home = homeOf(command, options);
  knownUser(home, name);
  return withLedgerAlone(command, async ({ database }) => {
    const before = knownUser(home, name);
    // As it is: a home that cannot be written shows here, and the user keeps the key of before. That one
    // ends before there is another: a reset that is killed leaves no key that no file names.
    await written(home, () => replaceUser(home, before));
    await revokeIfThere(database, before.keyId);
    const { role } = before;
    const replaces = before.keyId;
    const made = await makeKey(database, { ...options, name, role, replaces });
    const user = { ...before, ...made.fields, mustChange: true };
    await writtenWithKey(database, { home, user }, () => replaceUser(home, user));
    return tell(command, options, { name, role, password: made.password });
  });
}

/** `console user remove NAME`; of a user whose file cannot be used the key stays, which is told. */
export async function runRemoveConsoleUser(
  command: LedgerCommand,
  options: ConsoleUserOptions & { readonly name: string },
): Promise<number> {
  const home = homeOf(command, options);
  const { name } = options;
  const isUnreadable = lookForUser(home, name) === "unreadable";
  const keyId = isUnreadable ? undefined : knownUser(home, name).keyId;
  return withLedgerAlone(command, async ({ database }) => {
    // What the user may do ends with the key, also in sessions that are open.
    if (keyId !== undefined) await revokeIfThere(database, keyId);
    await written(home, () => removeUser(home, name));
    if (command.json) command.print(toJson({ name, keyId: keyId ?? null, status: "removed" }));
    else if (keyId === undefined) command.print(keyLeft(name));
    else command.print(`${name} is removed; open sessions end within a second.`);
    return 0;
  });
}

/** What is left to do where nobody knows which key a removed user had. */
function keyLeft(name: string): string {
  return (
    `${name} is removed; its file did not tell the key, which opens something still: causeway keys ` +
    `list shows it as "${keyNameOf(name)}", causeway keys revoke ends it, and open sessions with it.`
  );
}

/** `console user list`. */
export function runListConsoleUsers(command: LedgerCommand, options: ConsoleUserOptions): number {
  const home = homeOf(command, options);
  const users = listUsers(home).map(({ key: _key, ...user }) => user);
  const unreadable = listUnreadableUsers(home);
  if (command.json) command.print(toJson({ users, unreadable }));
  else if (users.length + unreadable.length === 0)
    command.print("There is no user yet: causeway console user add NAME --role ROLE.");
  else {
    for (const { name, role, keyId, mustChange } of users) {
      const first = mustChange ? ", has not chosen a password yet" : "";
      command.print(`${name}  ${role}  key ${keyId}${first}`);
    }
    for (const name of unreadable) {
      command.print(`${name}  the file cannot be used: causeway console user remove, then add`);
    }
  }
  return 0;
}

/** A first user and its password. */
export interface FirstLogin {
  readonly user: string;
  readonly password: string;
}

/** Makes the first user of a home that has none; undefined where there is one. */
export async function createFirstConsoleUser(
  command: Pick<LedgerCommand, "home" | "env" | "portOffset" | "signal">,
): Promise<FirstLogin | undefined> {
  const { home } = command;
  if (hasUsers(home)) return undefined;
  const quiet = { ...command, json: false, print: () => undefined };
  return withLedgerAlone(quiet, async ({ database }) => {
    const password = await addUser(database, { home, name: FIRST_USER, role: "admin" });
    return { user: FIRST_USER, password };
  });
}

function homeOf({ home }: LedgerCommand, { consoleHome }: ConsoleUserOptions): string {
  return consoleHome ?? home;
}

function knownUser(home: string, name: string) {
  const user = readUser(home, name);
  if (user !== undefined) return user;
  throw new CliError("USAGE", `No user is called ${name}: see \`causeway console user list\`.`);
}

async function addUser(
  database: SqlDatabase,
  given: NewUser & { readonly home: string },
): Promise<string> {
  const { home, name, role } = given;
  // Who has the name of a user who was removed counts as that one: a person is not made two by `remove`.
  const replaces = await findRevokedKey(database, keyNameOf(name));
  const { fields, password } = await makeKey(database, { ...given, replaces });
  const createdAt = new Date().toISOString();
  const user = { format: 1 as const, name, role, mustChange: true, createdAt, ...fields };
  if (!(await writtenWithKey(database, { home, user }, async () => createUser(home, user)))) {
    await revokeApiKey(database, fields.keyId);
    throw new CliError("USAGE", `${name} was made by somebody else at this moment.`);
  }
  return password;
}

interface NewUser extends Pick<ConsoleUserOptions, "cost"> {
  readonly name: string;
  readonly role: ConsoleRole;
}

async function makeKey(
  database: SqlDatabase,
  {
    name,
    role,
    cost = PASSWORD_COST,
    replaces,
  }: NewUser & { readonly replaces: string | undefined },
) {
  const password = newPassword();
  const { key, stored } = await createApiKey(database, {
    name: keyNameOf(name),
    scopes: scopesOf(role),
    callsPerSecond: undefined,
    expiresAt: undefined,
    replaces,
  });
  return { password, fields: { keyId: stored.id, key: await sealKey(key, password, name, cost) } };
}

/** How `causeway keys list` shows a user's key. */
function keyNameOf(name: string): string {
  return `console ${name}`;
}

/** A ledger that was made anew does not know the keys of before. */
async function revokeIfThere(database: SqlDatabase, keyId: string): Promise<void> {
  try {
    await revokeApiKey(database, keyId);
  } catch (error) {
    if (!(error instanceof LedgerError && error.code === "KEY_UNKNOWN")) throw error;
  }
}

/** Writes the file of a user with a new key, which is taken back where nobody can open it. */
async function writtenWithKey<T>(
  database: SqlDatabase,
  { home, user }: { readonly home: string; readonly user: Pick<ConsoleUser, "keyId"> },
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await written(home, work);
  } catch (error) {
    await revokeApiKey(database, user.keyId);
    throw error;
  }
}

async function written<T>(home: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (systemCode(cause) === "UNKNOWN") throw cause;
    throw cannotWrite(home, cause);
  }
}

/** Into a file of its own. Where it cannot be written the user is made all the same, which has to be told. */
async function writePassword(
  out: string,
  { name, password }: { readonly name: string; readonly password: string },
): Promise<void> {
  const again = `causeway console user reset ${name} --out FILE`;
  const isNew = await createNamedFile(out, `${password}\n`, SECRET_MODE).catch((cause: unknown) => {
    const lost = "The user is made, and nobody has the password";
    throw new CliError("HOME_UNUSABLE", `${sentenceOf(cause)} ${lost}: ${again}.`, { cause });
  });
  if (isNew) return;
  throw new CliError("USAGE", `${out} is there already; the user is made: ${again}.`);
}

/** Shows the password, once: this command exists to hand it out. */
async function tell(
  command: LedgerCommand,
  options: ConsoleUserOptions,
  made: { readonly name: string; readonly role: ConsoleRole; readonly password: string },
): Promise<number> {
  const { name, role, password } = made;
  const out = options.out === undefined ? undefined : resolve(options.out);
  if (out !== undefined) await writePassword(out, made);
  if (command.json) {
    command.print(toJson({ name, role, ...(out === undefined ? { password } : { file: out }) }));
    return 0;
  }
  command.print(out === undefined ? password : `The password is in ${out}.`);
  command.print(
    `${name} (${role}) chooses another one at the first login; this one is kept nowhere.`,
  );
  return 0;
}
