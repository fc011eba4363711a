/** Search and events on a real chain, against every block that /block shows; then a restart. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { ContractFactory, getCreateAddress, Interface, keccak256, Wallet } from "ethers";
import { parseAddress } from "../../../chain/address.js";
import type { RosettaBlock } from "../../../sidecar/rosetta/operations.js";
import { TokenRegistry } from "../../../sidecar/rosetta/token-registry.js";
import { testGenesis } from "../../helpers/chains/execution-chain.js";
import { createRandom } from "../../helpers/random.js";
import { ServedChain } from "../../helpers/chains/served-chain.js";
import { compileFixture } from "../../helpers/contracts/solidity.js";
import { bruteForce } from "../../unit/sidecar/index/random-blocks.js";
import { call, type Online, onlineServer } from "../../unit/sidecar/servers.js";

const SEED = 4;
const BLOCKS = 40;
const wallet = new Wallet(`0x${"11".repeat(32)}`);
const token = parseAddress(getCreateAddress({ from: wallet.address, nonce: 0 }));
const registry = new TokenRegistry([{ contractAddress: token, symbol: "BAL", decimals: 2 }]);
const compiled = compileFixture("Balances.sol")["Balances"];
if (compiled === undefined) throw new Error("fixture did not compile");
const { bytecode } = compiled;
const abi = new Interface(JSON.stringify(compiled.abi));
const random = createRandom(SEED);
const accounts = Array.from({ length: 8 }, (_unused, nth) => `0x${`c${nth}`.repeat(20)}`);
let nonce = 0;

function sign(to: string | null, data: string, value = 0n): Promise<string> {
  const fields = { type: 0, chainId: 6940, gasPrice: 25_000_000n, gasLimit: 1_000_000n };
  return wallet.signTransaction({ ...fields, nonce: nonce++, to, data, value });
}

/** A payment, tokens, or a call that the contract refuses. */
function randomTransaction(): Promise<string> {
  const kind = random.integer(4);
  const account = random.pick(accounts);
  if (kind === 0) return sign(token, abi.encodeFunctionData("mint", [account, 5n]));
  if (kind === 1) return sign(token, "0xdeadbeef");
  return sign(account, "0x", BigInt(random.integer(3)));
}

describe("over a real chain", () => {
  const folder = mkdtempSync(join(tmpdir(), "causeway-search-chain-"));
  let served: ServedChain;
  let online: Online;
  let seen: RosettaBlock[] = [];

  const ask = async (path: string, fields: Record<string, unknown>) => {
    const { status, text } = await call(online.server, path, fields);
    expect({ path, fields, status, text }).toMatchObject({ status: 200 });
    return JSON.parse(text);
  };

  beforeAll(async () => {
    served = await ServedChain.open(testGenesis(wallet.address));
    const deploy = await new ContractFactory(abi, bytecode).getDeployTransaction();
    await served.mine([await sign(null, deploy.data)]);
    for (let height = 2; height <= BLOCKS; height += 1) {
      const raws: string[] = [];
      for (let left = random.integer(6); left > 0; left -= 1) raws.push(await randomTransaction());
      await served.mine(raws);
    }
    // Nearly every reply is dropped and made again, so that pages come from all sources.
    online = onlineServer(served.url, { registry, folder, storedBlocksBytes: 20_000 });
    await online.indexed(BLOCKS);
  });

  afterAll(async () => {
    await online.rpc.close();
    await served.close();
    rmSync(folder, { recursive: true, force: true });
  });

  async function readBlocks(): Promise<RosettaBlock[]> {
    const { max_sequence, events } = await ask("/events/blocks", { offset: 0, limit: 1_000 });
    const blocks: RosettaBlock[] = [];
    for (const { sequence, block_identifier, type } of events) {
      const { block } = await ask("/block", { block_identifier: { index: sequence } });
      expect({ type, block_identifier }).toEqual({
        type: "block_added",
        block_identifier: block.block_identifier,
      });
      blocks.push(block);
    }
    expect(blocks).toHaveLength(max_sequence + 1);
    return blocks;
  }

  async function compare(rounds: number): Promise<void> {
    const operations = seen
      .flatMap(({ transactions }) => transactions)
      .flatMap((one) => one.operations);
    const tip = seen.length - 1;
    for (let round = 0; round < rounds; round += 1) {
      const operator = random.pick(["and", "or"]);
      const { account, type, status, amount } = random.pick(operations);
      const all = [
        { account_identifier: account },
        { address: account.address },
        { type },
        { status },
        { currency: amount.currency },
        { success: status === "SUCCESS" },
      ];
      const conditions = all.filter(() => random.integer(3) === 0);
      const fields = Object.assign({ operator, max_block: random.integer(tip + 1) }, ...conditions);
      const expected = bruteForce(seen, fields.max_block, (transaction) => {
        const tests = conditions.map((condition) =>
          transaction.operations.some((operation) => holds(operation, condition)),
        );
        return operator === "or" && tests.length > 0 ? tests.some(Boolean) : tests.every(Boolean);
      });
      const offset = random.integer(expected.length + 1);
      const page = await ask("/search/transactions", { ...fields, offset, limit: 15 });
      expect({ round, fields, total: page.total_count, found: page.transactions }).toEqual({
        round,
        fields,
        total: expected.length,
        found: expected.slice(offset, offset + 15).map(({ height, position }) => ({
          block_identifier: seen[height]?.block_identifier,
          transaction: seen[height]?.transactions[position],
        })),
      });
    }
  }

  it("finds exactly what /block shows", async () => {
    seen = await readBlocks();
    const text = JSON.stringify(seen);
    for (const what of [
      "GENESIS",
      "FAILURE",
      "ERC20_MINT",
      "ERC20_TRANSFER",
      "FEE_BURN",
      "CREATE",
    ]) {
      expect({ what, occurs: text.includes(`"${what}"`) }).toEqual({ what, occurs: true });
    }
    await compare(120);
  });

  it("finds a transaction as soon as the node has mined it", async () => {
    const raw = await sign(random.pick(accounts), "0x", 9n);
    await served.mine([raw]);
    const hash = keccak256(raw);
    const page = await ask("/search/transactions", { transaction_identifier: { hash } });
    expect(page).toMatchObject({
      total_count: 1,
      transactions: [
        {
          block_identifier: { index: BLOCKS + 1 },
          transaction: { transaction_identifier: { hash } },
        },
      ],
    });
    const { events } = await ask("/events/blocks", { offset: BLOCKS + 1 });
    expect(events).toEqual([
      {
        sequence: BLOCKS + 1,
        block_identifier: page.transactions[0].block_identifier,
        type: "block_added",
      },
    ]);
  });

  it("finds the same after a restart, in the blocks before and after it", async () => {
    await online.rpc.close();
    for (let left = 3; left > 0; left -= 1) await served.mine([await randomTransaction()]);
    online = onlineServer(served.url, { registry, folder, storedBlocksBytes: 20_000 });
    await online.indexed(BLOCKS + 4);
    seen = await readBlocks();
    expect(seen).toHaveLength(BLOCKS + 5);
    await compare(60);
  });
});

function holds(
  operation: RosettaBlock["transactions"][number]["operations"][number],
  condition: Readonly<Record<string, unknown>>,
): boolean {
  const { account, amount, type, status } = operation;
  const facts: Readonly<Record<string, unknown>> = {
    account_identifier: account,
    address: account.address,
    type,
    status,
    currency: amount.currency,
    success: status === "SUCCESS",
  };
  return Object.entries(condition).every(
    ([name, value]) => JSON.stringify(facts[name]) === JSON.stringify(value),
  );
}
