/** Writes a proof of reserves and the customers' files: together, for no other proof has their salts. */
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import {
  type CreateOptions,
  createFilesOnce,
  PLAIN_MODE,
  SECRET_MODE,
} from "../../home/home-file.js";
import { AuditError } from "../errors.js";
import { encodeLiability, liabilityFileNames } from "./liability-file.js";
import type { MadeReserves } from "./make-reserves.js";
import { encodeReserves } from "./reserves-file.js";

/** Where the files go. */
export interface ReservesPlaces {
  /** File for everybody. */
  readonly out: string;
  /** Folder that takes a file for each customer; made where it is missing. */
  readonly customers: string | undefined;
}

/** Before the work is done that the file is to hold. @throws BAD_OPTION where it is there already */
export function assertFree(out: string): void {
  if (existsSync(out)) throw thereAlready(out, "--out");
}

/**
 * The file that is published comes last: as long as it is not there, nobody can hand out what the customers
 * cannot check. What was written before a fault, or before the signal, is removed.
 * @throws BAD_OPTION where one of the files is there already; HOME_UNUSABLE where one cannot be written; the
 *   signal's reason
 */
export async function writeReserves(
  { contents, liabilities }: MadeReserves,
  { out, customers }: ReservesPlaces,
  options: CreateOptions,
): Promise<void> {
  assertFree(out);
  if (customers !== undefined) await mkdir(customers, { recursive: true, mode: 0o700 });
  const ofCustomers = customers === undefined ? [] : liabilities;
  const nameOf = liabilityFileNames(ofCustomers);
  const files = [
    ...ofCustomers.map((liability) => ({
      path: join(customers ?? "", nameOf(liability)),
      mode: SECRET_MODE,
      content: () => encodeLiability(liability.file()),
    })),
    { path: out, mode: PLAIN_MODE, content: () => encodeReserves(contents) },
  ];
  const taken = await createFilesOnce(files, options);
  if (taken !== undefined) throw thereAlready(taken, taken === out ? "--out" : "--customers");
}

function thereAlready(path: string, flag: string): AuditError {
  return new AuditError("BAD_OPTION", `${path} is there already: choose another with ${flag}.`);
}
