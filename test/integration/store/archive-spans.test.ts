/** An archive as a node runs it: spans are made behind its blocks, and every height is proven by them. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createMPTFromProof, verifyMerkleProof } from "@ethereumjs/mpt";
import { Wallet } from "ethers";
import { heightBytes } from "../../../chain/encoding/height-bytes.js";
import { keccak256 } from "../../../chain/hashes.js";
import { parseAddress } from "../../../chain/address.js";
import { hexToBytes, parseHexBytes } from "../../../chain/hex.js";
import { startPruning } from "../../../node/compose/pruning.js";
import { loadNodeSettings } from "../../../node/settings/config.js";
import { consensusParamsOf } from "../../../node/settings/genesis.js";
import { storeKey } from "../../../node/store/database.js";
import { SPAN_FAN_OUT } from "../../../node/store/tries/trie-spans.js";
import { EventBus } from "../../../node/view/event-bus.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { ExecutionChain, testGenesis } from "../../helpers/chains/execution-chain.js";

const wallet = new Wallet(`0x${"33".repeat(32)}`);
const payee = parseAddress(`0x${"55".repeat(20)}`);
const span = storeKey("trieSpan", Uint8Array.of(1), heightBytes(0));
const { signal } = new AbortController();

let chain: ExecutionChain;
let home: string;

beforeAll(async () => {
  home = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-archive-"));
  fs.mkdirSync(path.join(home, "config"));
  fs.writeFileSync(path.join(home, "config", "app.toml"), 'pruning = "nothing"\n');
  chain = await ExecutionChain.open(testGenesis(wallet.address), { archive: true });
  for (let nonce = 0; nonce <= SPAN_FAN_OUT; nonce++) {
    const raw = await wallet.signTransaction({
      type: 0,
      chainId: 6940,
      gasPrice: 25_000_000n,
      gasLimit: 21_000n,
      nonce,
      to: payee,
      value: 1n,
    });
    await chain.mine([raw]);
  }
});

afterAll(async () => {
  await chain.close();
  fs.rmSync(home, { recursive: true, force: true });
});

/** Runs what keeps a node's past, as far as a line of its log. */
async function runUntil(message: string): Promise<void> {
  const { config, app } = loadNodeSettings({ home, env: {} });
  let isSaid = () => {};
  const said = new Promise<void>((resolve) => (isSaid = resolve));
  const destination = {
    write(line: string) {
      if (JSON.parse(line).msg === message) isSaid();
    },
  };
  const service = startPruning({
    stores: chain.stores,
    consensus: {
      height: () => chain.view.head().height,
      isPastEvidence: () => false,
      params: () => consensusParamsOf(chain.genesis.params),
    },
    bus: new EventBus((error) => {
      throw error;
    }),
    app,
    config,
    blockIntervalMs: 2_000,
    oldestSnapshot: () => undefined,
    log: createLogger({ component: "test", level: "debug", destination }),
    signal,
    fatal: (error) => {
      throw error;
    },
  });
  await said;
  await service.stop?.();
}

async function proofsOfAll(): Promise<string[][]> {
  const proofs: string[][] = [];
  for (let height = 0; height <= chain.view.head().height; height++) {
    const { accountProof } = await chain.view.proof(payee, [], height, signal);
    proofs.push([...accountProof]);
  }
  return proofs;
}

describe("an archive that runs", () => {
  it("proves every height by spans as before, and by the header's root", async () => {
    const before = await proofsOfAll();
    expect(chain.stores.database.get(span)).toBeUndefined();
    await runUntil("span made");
    expect(chain.stores.database.get(span)).toBeDefined();
    const after = await proofsOfAll();
    expect(after).toEqual(before);
    for (const [height, proof] of after.entries()) {
      const root = hexToBytes(chain.view.block(height)?.block.header.stateRoot ?? "0x");
      const nodes = proof.map((node) => parseHexBytes(node));
      await createMPTFromProof(nodes, { root });
      const value = await verifyMerkleProof(keccak256(hexToBytes(payee)), nodes);
      expect({ height, isThere: value !== null }).toEqual({ height, isThere: height > 0 });
    }
  });

  it("reads them: a damaged one is named", async () => {
    const page = storeKey("trieSpanPage", Uint8Array.of(1), heightBytes(0), Buffer.alloc(4));
    const value = chain.stores.database.get(page);
    await chain.stores.database.write([{ key: page, value: undefined }], { durable: false });
    const proof = (height: number) => chain.view.proof(payee, [], height, signal);
    await expect(proof(0)).rejects.toMatchObject({ code: "STORE_CORRUPT" });
    await expect(proof(1)).resolves.toBeDefined();
    await chain.stores.database.write([{ key: page, value }], { durable: false });
  });
});
