/** An operator beside a house of `house.ts`: a home, a terminal, and commands about withdrawals. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect } from "@jest/globals";
import type { Address } from "../../../chain/address.js";
import { bytesToHex } from "../../../chain/hex.js";
import { signLegacy } from "../../../chain/transaction.js";
import {
  type ReleaseOptions,
  runReleaseWithdrawals,
} from "../../../cli/commands/withdrawals/release.js";
import type { LedgerCommand } from "../../../cli/ledger/ledger-tools.js";
import { FAKE_CHAIN_ID } from "../chains/fake-chain.js";
import { roleUrl } from "../services/ledger.js";
import { freshAddress, type House, WALLET, WALLET_KEY } from "./house.js";

/** A transaction of somebody who has the hot wallet's key, too. */
export interface ForeignFields {
  readonly nonce: bigint;
  readonly to?: Address;
  readonly valueAtoken?: bigint;
}

/** Makes a home for each test, and gives what an operator of it does. */
export function operatorBeside(houseOf: () => House) {
  let home: string;
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), "causeway-release-"));
    mkdirSync(join(home, "config"));
    writeFileSync(join(home, "config", "hot-wallet.json"), JSON.stringify({ address: WALLET }));
  });
  afterEach(() => rmSync(home, { recursive: true, force: true }));
  const printed: string[] = [];
  /** What a command gets; whatever was printed before is forgotten. */
  const command = (json = false): LedgerCommand => {
    const house = houseOf();
    printed.length = 0;
    return {
      home,
      portOffset: 0,
      json,
      env: {
        DATABASE_URL: roleUrl(house.ledger.owner.url, "operator"),
        CAUSEWAY_WATCHER_NODE_JSON_RPC_URL: house.chain.url,
      },
      signal: house.signal,
      print: (text) => void printed.push(text),
    };
  };
  return {
    printed,
    command,
    release: (options: ReleaseOptions = {}) => runReleaseWithdrawals(command(), options),
    sendForeign: (fields: ForeignFields) => sendForeign(houseOf(), fields),
    signUnsent: () => signUnsent(houseOf()),
  };
}

/** An operator's word about transactions nobody asked for. */
export const looked = (...acknowledge: string[]) => ({ acknowledge, reason: "the key is rotated" });

/** A withdrawal whose payment has its nonce and signature, and never came to the node. */
async function signUnsent(house: House) {
  const to = freshAddress();
  const { id } = await house.accept({ destination: to, destinationText: to });
  const lane = house.lane();
  house.chain.wireFault = (methods) =>
    methods.includes("eth_sendRawTransaction") ? "reset-before" : undefined;
  await expect(lane.runRound(house.signal)).rejects.toThrow();
  house.chain.wireFault = () => undefined;
  return { id, lane, to };
}

/** Someone else uses the hot wallet's key. */
async function sendForeign(house: House, fields: ForeignFields): Promise<string> {
  const raw = signLegacy(
    {
      chainId: FAKE_CHAIN_ID,
      nonce: fields.nonce,
      gasPriceAtoken: 30_000_000n,
      gasLimit: 21_000n,
      to: fields.to ?? freshAddress(),
      valueAtoken: fields.valueAtoken ?? 5n,
      data: new Uint8Array(0),
    },
    WALLET_KEY,
  );
  const call = {
    jsonrpc: "2.0",
    id: 1,
    method: "eth_sendRawTransaction",
    params: [bytesToHex(raw)],
  };
  const answer = await fetch(house.chain.url, { method: "POST", body: JSON.stringify(call) });
  const { result } = (await answer.json()) as { result: string };
  return result;
}
