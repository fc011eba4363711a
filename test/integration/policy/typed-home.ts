/** A home made anew for each test, and what commands that a person types in it are given. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { LedgerCommand } from "../../../cli/ledger/ledger-tools.js";
import { WALLET } from "../../helpers/exchange/house.js";
import { freshFile } from "../../helpers/keys/signing.js";

/** A ledger that nobody reaches. */
export const DOWN = "postgres://nobody:x@127.0.0.1:1/none";

/** A home that knows its hot wallet by the address alone. @returns its folder */
export function makeHome(): string {
  const home = dirname(freshFile("x"));
  mkdirSync(join(home, "config"));
  writeFileSync(join(home, "config", "hot-wallet.json"), JSON.stringify({ address: WALLET }));
  return home;
}

/** A command in a home over a ledger; what it prints is given to `print`. */
export function typedIn(
  home: string,
  databaseUrl: string,
  print: LedgerCommand["print"],
): LedgerCommand {
  return {
    home,
    portOffset: 0,
    json: false,
    env: { DATABASE_URL: databaseUrl },
    signal: new AbortController().signal,
    print,
  };
}
