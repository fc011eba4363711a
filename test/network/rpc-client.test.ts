/**
 * CometBFT's own Go client, unmodified, calls every method of a node of a network that has traffic
 * and takes its events; what it gets is checked with CometBFT's code (rpc-client/main.go).
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { execFile } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { parseAddress } from "../../chain/address.js";
import { privateKeyToAddress } from "../../chain/signing/account-key.js";
import { hexToBytes } from "../../chain/hex.js";
import { encodeSdkTransaction } from "../../chain/consensus/sdk-transaction.js";
import { decodeTransaction, signLegacy } from "../../chain/transaction.js";
import { type RunningNetwork, startNetwork } from "./network.js";

/** Transactions that the program sends. */
const TRANSACTIONS = 5;

/** Longest that the program may take: it waits for events of blocks. */
const TIMEOUT_MS = 600_000;

describe("CometBFT's Go client", () => {
  let network: RunningNetwork;

  beforeAll(async () => {
    network = await startNetwork({ validators: 4, blockIntervalMs: 300, hasShortTimeouts: true });
  });
  afterAll(async () => {
    await network?.remove();
  });

  it(
    "understands every answer and every event, and finds nothing wrong in them",
    async () => {
      const [node] = network.validators;
      if (node === undefined) throw new Error("no node");
      const file = path.join(network.folder, "transactions");
      fs.writeFileSync(file, transfers(hexToBytes(network.faucetKey)).join("\n"));
      const program = process.env["RPC_CLIENT"];
      if (program === undefined) throw new Error("run this with `npm run test:network`");
      const output = await run(program, ["-node", node.cometUrl, "-txs", file]);
      expect(output).toMatch(/^[0-9]{3,} checks, 0 findings\n$/);
    },
    TIMEOUT_MS,
  );
});

/** The program's output, whether it ends well or not. */
async function run(program: string, words: readonly string[]): Promise<string> {
  const ended = promisify(execFile)(program, words, { timeout: TIMEOUT_MS });
  const { stdout } = await ended.catch((error: unknown) => {
    const isOutput = error instanceof Error && "stdout" in error;
    return { stdout: isOutput ? String(error.stdout) : String(error) };
  });
  return stdout;
}

/** The faucet's first transfers as consensus carries them, in base64. */
function transfers(key: Uint8Array): readonly string[] {
  const from = privateKeyToAddress(key);
  return Array.from({ length: TRANSACTIONS }, (_, nonce) => {
    const intent = {
      chainId: 6940n,
      nonce: BigInt(nonce),
      gasPriceAtoken: 25_000_000n,
      gasLimit: 21_000n,
      to: parseAddress("0x00000000000000000000000000000000000000aa"),
      valueAtoken: 1n,
      data: new Uint8Array(0),
    };
    const tx = decodeTransaction(signLegacy(intent, key));
    return encodeSdkTransaction(tx, from).toString("base64");
  });
}
