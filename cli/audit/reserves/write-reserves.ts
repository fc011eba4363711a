/** Writes a proof of reserves and the customers' files: together, for no other proof has their salts. */
import { existsSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { createFileOnce, PLAIN_MODE, SECRET_MODE } from "../../home/home-file.js";
import { AuditError } from "../errors.js";
import { encodeLiability, liabilityFileName } from "./liability-file.js";
import type { MadeReserves } from "./make-reserves.js";
import { encodeReserves } from "./reserves-file.js";

/** Where the files go. */
export interface ReservesPlaces {
  /** File for everybody. */
  readonly out: string;
  /** Folder that takes a file for each customer; made where it is missing. */
  readonly customers: string | undefined;
}

/**
 * The file that is published comes last: as long as it is not there, nobody can hand out what the customers
 * cannot check. What was written before a fault is removed.
 * @throws BAD_OPTION where one of the files is there already; HOME_UNUSABLE where one cannot be written
 */
export async function writeReserves(
  { contents, liabilities }: MadeReserves,
  { out, customers }: ReservesPlaces,
): Promise<void> {
  if (existsSync(out)) throw thereAlready(out, "--out");
  const written: string[] = [];
  try {
    if (customers !== undefined) {
      await mkdir(customers, { recursive: true, mode: 0o700 });
      for (const liability of liabilities) {
        const path = join(customers, liabilityFileName(liability));
        if (!(await createFileOnce(path, encodeLiability(liability), SECRET_MODE))) {
          throw thereAlready(path, "--customers");
        }
        written.push(path);
      }
    }
    if (!(await createFileOnce(out, encodeReserves(contents), PLAIN_MODE))) {
      throw thereAlready(out, "--out");
    }
  } catch (error) {
    for (const path of written) await rm(path, { force: true }).catch(() => undefined);
    throw error;
  }
}

function thereAlready(path: string, flag: string): AuditError {
  return new AuditError("BAD_OPTION", `${path} is there already: choose another with ${flag}.`);
}
