/** Writes a proof of reserves and the customers' files: together, for no other proof has their salts. */
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import {
  type CreateOptions,
  createFilesOnce,
  type NewFile,
  PLAIN_MODE,
  SECRET_MODE,
} from "../../home/home-file.js";
import { AuditError } from "../errors.js";
import { encodeLiability, liabilityFileNames } from "./liability-file.js";
import type { MadeReserves } from "./make-reserves.js";
import { encodeReserves, type ReservesContents } from "./reserves-file.js";

/** Where the files go. */
export interface ReservesPlaces {
  /** File for everybody, or a draft. */
  readonly out: string;
  /** Folder that takes a file for each customer; made where it is missing. */
  readonly customers: string | undefined;
}

/** Before the work is done that the file is to hold. @throws BAD_OPTION where it is there already */
export function assertFree(out: string): void {
  if (existsSync(out)) throw thereAlready(out, "--out");
}

/** Where the text lies that the wallets of a draft sign. */
export function textBeside(draft: string): string {
  return `${draft}.txt`;
}

/**
 * A proof that others signed; a draft as long as somebody has not.
 * @throws as `writeReserves` does
 */
export async function writeSigned(
  contents: ReservesContents,
  { out, isDraft }: { readonly out: string; readonly isDraft: boolean },
  options: CreateOptions,
): Promise<void> {
  const taken = await createFilesOnce([proofFile(contents, { out, isDraft })], options);
  if (taken !== undefined) throw thereAlready(taken, "--out");
}

/**
 * The file that is published comes last: as long as it is not there, nobody can hand out what the customers
 * cannot check. So it is with a draft, beside which lies the text that is to be signed, without a line end.
 * What was written before a fault, or before the signal, is removed.
 * @throws BAD_OPTION where one of the files is there already; HOME_UNUSABLE where one cannot be written; the
 *   signal's reason
 */
export async function writeReserves(
  { contents, liabilities }: MadeReserves,
  { out, customers }: ReservesPlaces,
  options: CreateOptions & {
    /** What wallets have to sign; undefined where it is no draft. */
    readonly text?: string | undefined;
  },
): Promise<void> {
  assertFree(out);
  const { text } = options;
  if (customers !== undefined) await mkdir(customers, { recursive: true, mode: 0o700 });
  const ofCustomers = customers === undefined ? [] : liabilities;
  const nameOf = liabilityFileNames(ofCustomers);
  const files = [
    ...ofCustomers.map((liability) => ({
      path: join(customers ?? "", nameOf(liability)),
      mode: SECRET_MODE,
      content: () => encodeLiability(liability.file()),
    })),
    ...(text === undefined
      ? []
      : [{ path: textBeside(out), mode: SECRET_MODE, content: () => text }]),
    proofFile(contents, { out, isDraft: text !== undefined }),
  ];
  const taken = await createFilesOnce(files, options);
  if (taken === undefined) return;
  const isOfOut = taken === out || taken === textBeside(out);
  throw thereAlready(taken, isOfOut ? "--out" : "--customers");
}

/** A draft is for nobody but those who sign. */
function proofFile(
  contents: ReservesContents,
  { out, isDraft }: { readonly out: string; readonly isDraft: boolean },
): NewFile {
  const mode = isDraft ? SECRET_MODE : PLAIN_MODE;
  return { path: out, mode, content: () => encodeReserves(contents) };
}

function thereAlready(path: string, flag: string): AuditError {
  return new AuditError("BAD_OPTION", `${path} is there already: choose another with ${flag}.`);
}
