/**
 * What a home remembers of the policy that it brought into force last: a file that is another one by now was
 * changed by a person, and one that is the same was not, whatever came into force since by other homes.
 */
import { readFileSync } from "node:fs";
import { dirname } from "node:path";
import { errorCode } from "../chain/errors.js";
import type { NextPolicy } from "../ledger/policy/policy-store.js";
import { replaceFile, SECRET_MODE } from "../runtime/files/durable-file.js";
import { makeFolders } from "../runtime/files/folder.js";
import { WorkerError } from "./errors.js";

/** A policy by its hash, and the activation by which it is in force. */
export interface PolicyMark {
  readonly hash: string;
  readonly id: number;
  /** What the home was about to bring into force; whether it did, only the ledger knows. */
  readonly next?: NextPolicy | undefined;
}

/**
 * What the home remembers; undefined for a home that has brought none into force.
 * @throws POLICY_UNREADABLE for a file that says nothing: it is never taken for a missing one
 */
export function readPolicyMark(file: string): PolicyMark | undefined {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (cause) {
    if (errorCode(cause) === "ENOENT") return undefined;
    throw unreadable(file, cause);
  }
  try {
    const value: unknown = JSON.parse(text);
    const [hash, id, next] = fieldsOf(value, ["hash", "id", "next"]);
    const [nextHash, after] = fieldsOf(next, ["hash", "after"]);
    if (typeof hash === "string" && typeof id === "number") {
      if (next === undefined) return { hash, id };
      if (typeof nextHash === "string" && typeof after === "number") {
        return { hash, id, next: { hash: nextHash, after } };
      }
    }
  } catch (cause) {
    throw unreadable(file, cause);
  }
  throw unreadable(file);
}

/** Remembers durably. Throws the system's fault. */
export async function writePolicyMark(file: string, { hash, id, next }: PolicyMark): Promise<void> {
  makeFolders(dirname(file));
  await replaceFile(file, `${JSON.stringify({ hash, id, next })}\n`, SECRET_MODE);
}

function fieldsOf(value: unknown, names: readonly string[]): unknown[] {
  return names.map((name) => Reflect.get(Object(value), name));
}

function unreadable(file: string, cause?: unknown): WorkerError {
  const message = `${file} says nothing of the policy that was in force: delete it`;
  return new WorkerError("POLICY_UNREADABLE", message, { cause });
}
