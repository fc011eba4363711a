/**
 * Users of the console: one file each below `data/console/users`, written whole, mode 600. What a user
 * may do is the ledger's to say: it has the user's API key, and revoking that ends the user. The file
 * only says how the key is opened.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { AppError, errorCode } from "../../chain/errors.js";
import { createFileOnce, replaceFile, SECRET_MODE } from "../../runtime/files/durable-file.js";
import { makeFolders, syncFolder } from "../../runtime/files/folder.js";
import { CONSOLE_ROLES } from "./roles.js";

/** A file that cannot be used. */
export class UserFileError extends AppError<"USER_FILE_UNREADABLE"> {}

const hex = z.string().regex(/^([0-9a-f]{2})+$/);

const userFile = z.strictObject({
  format: z.literal(1),
  name: z.string(),
  role: z.enum(CONSOLE_ROLES),
  /** The API key's id in the ledger. */
  keyId: z.string(),
  /** True until the password that was made for the user is replaced by one of the user's own. */
  mustChange: z.boolean(),
  createdAt: z.string(),
  key: z.strictObject({
    cost: z.strictObject({
      n: z.number().int().min(2).max(1_048_576),
      r: z.number().int().min(1).max(16),
      p: z.number().int().min(1).max(16),
    }),
    salt: hex,
    verifier: hex,
    iv: hex,
    sealed: hex,
    tag: hex,
  }),
});

/** A user as stored. */
export type ConsoleUser = Readonly<z.output<typeof userFile>>;

/** Files that are looked at; more users than any exchange has. */
const MAX_USERS = 1_000;

/** What a user may be called: also the name of a file. */
const NAME = /^[a-z][a-z0-9_-]{0,31}$/;

/** Whether a name can be a user's. */
export function isUserName(name: string): boolean {
  return NAME.test(name);
}

/** Folder of a home with all that the console keeps of its users. */
export function usersFolder(home: string): string {
  return join(home, "data", "console", "users");
}

function fileOf(home: string, name: string): string {
  return join(usersFolder(home), `${name}.json`);
}

/** Whether a home has users at all. */
export function hasUsers(home: string): boolean {
  return existsSync(usersFolder(home)) && userNames(home).length > 0;
}

/** All users by name, but for those whose file cannot be used. */
export function listUsers(home: string): readonly ConsoleUser[] {
  if (!existsSync(usersFolder(home))) return [];
  return userNames(home).flatMap((name) => {
    const user = lookForUser(home, name);
    return user === "unreadable" ? [] : (user ?? []);
  });
}

/** Names under which there is a file that cannot be used: what role and key it had, nobody knows. */
export function listUnreadableUsers(home: string): readonly string[] {
  if (!existsSync(usersFolder(home))) return [];
  return userNames(home).filter((name) => lookForUser(home, name) === "unreadable");
}

function userNames(home: string): readonly string[] {
  return readdirSync(usersFolder(home))
    .filter((file) => file.endsWith(".json") && isUserName(file.slice(0, -".json".length)))
    .map((file) => file.slice(0, -".json".length))
    .toSorted()
    .slice(0, MAX_USERS);
}

/** A user by name; undefined for none. @throws USER_FILE_UNREADABLE */
export function readUser(home: string, name: string): ConsoleUser | undefined {
  if (!isUserName(name)) return undefined;
  const file = fileOf(home, name);
  try {
    const user = userFile.parse(JSON.parse(readFileSync(file, "utf8")));
    if (user.name === name) return user;
  } catch (cause) {
    if (errorCode(cause) === "ENOENT") return undefined;
    throw unreadable(file, cause);
  }
  throw unreadable(file);
}

/** As `readUser`, for whoever can do something about a file that cannot be used. */
export function lookForUser(home: string, name: string): ConsoleUser | "unreadable" | undefined {
  try {
    return readUser(home, name);
  } catch (error) {
    if (error instanceof UserFileError) return "unreadable";
    throw error;
  }
}

function unreadable(file: string, cause?: unknown): UserFileError {
  const commands = "causeway console user remove, then add";
  const message = `${file} is no user of the console: make the user anew with ${commands}`;
  return new UserFileError("USER_FILE_UNREADABLE", message, { details: { file }, cause });
}

/** Writes a new user. @returns false where the name is taken; throws the system's fault */
export function createUser(home: string, user: ConsoleUser): boolean {
  makeFolders(usersFolder(home));
  return createFileOnce(fileOf(home, user.name), encode(user), SECRET_MODE);
}

/** Replaces a user. Throws the system's fault. */
export async function replaceUser(home: string, user: ConsoleUser): Promise<void> {
  await replaceFile(fileOf(home, user.name), encode(user), SECRET_MODE);
}

/** Removes a user's file, durably. Throws the system's fault. */
export async function removeUser(home: string, name: string): Promise<void> {
  await rm(fileOf(home, name), { force: true });
  await syncFolder(usersFolder(home));
}

function encode(user: ConsoleUser): string {
  return `${JSON.stringify(user, undefined, 2)}\n`;
}
