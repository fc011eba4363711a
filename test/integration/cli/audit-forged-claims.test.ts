/** Claims of a lying node that no chain can have: each is a named difference and never a crash. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { decodeRlp, encodeRlp, HDNodeWallet, keccak256, Wallet } from "ethers";
import { parseAddress, toBech32 } from "../../../chain/address.js";
import type { BalanceChange } from "../../../chain/balance-change.js";
import { hexToBytes } from "../../../chain/hex.js";
import { createAuditNode, type AuditNode } from "../../../cli/audit/audit-node.js";
import { listRoot } from "../../../cli/audit/chain-rules.js";
import { auditExecution } from "../../../cli/audit/execution-audit.js";
import type { Genesis } from "../../../node/settings/genesis.js";
import type { JournaledBlock } from "../../../rpc-client/journal-codec.js";
import { createJsonRpcClient, type JsonRpcClient } from "../../../rpc-client/json-rpc.js";
import { ServedChain } from "../../helpers/chains/served-chain.js";
import { signWithCosmJs } from "../../helpers/cosmos/cosmjs.js";
import { stakedGenesis } from "../../helpers/cosmos/module-state.js";

const { signal } = new AbortController();
const wallet = new Wallet(`0x${"11".repeat(32)}`);
const POOR = parseAddress(`0x${"66".repeat(20)}`);
const RICHER = parseAddress(`0x${"67".repeat(20)}`);
const PHRASE = "test test test test test test test test test test test junk";
const sender = HDNodeWallet.fromPhrase(PHRASE);
const CLAIMED = 10n ** 18n;

let served: ServedChain;
let genesis: Genesis;
let rpc: JsonRpcClient;
let node: AuditNode;

beforeAll(async () => {
  const staked = stakedGenesis([40, 60]);
  const faucet = { balanceAtoken: 10n ** 24n, code: undefined, storage: new Map() };
  genesis = {
    ...staked,
    alloc: new Map(staked.alloc)
      .set(parseAddress(wallet.address), faucet)
      .set(parseAddress(sender.address), faucet),
  };
  served = await ServedChain.open(genesis);
  rpc = createJsonRpcClient({ url: served.url, timeoutMs: 240_000 });
  node = createAuditNode(rpc, signal);
  const fields = { type: 0, chainId: 6940, nonce: 0, gasLimit: 21_000n, gasPrice: 25_000_000n };
  await served.mine([await wallet.signTransaction({ ...fields, to: RICHER, value: 5n })]);
});
afterAll(async () => {
  rpc.close();
  await served.close();
});

async function difference(changes: Partial<AuditNode>) {
  return (await audit(changes, 1)).difference;
}

function audit(changes: Partial<AuditNode>, to: number) {
  return auditExecution({
    node: { ...node, ...changes },
    genesis,
    from: 1,
    to,
    trustedHash: undefined,
    onProgress: () => undefined,
    signal,
  });
}

const claiming = (change: (block: JournaledBlock) => JournaledBlock): Partial<AuditNode> => ({
  journal: async (hash) => change(await node.journal(hash)),
});
const move = (fields: Partial<BalanceChange>): BalanceChange => ({
  reason: "CALL",
  from: POOR,
  to: RICHER,
  amountAtoken: CLAIMED,
  effective: true,
  tracePath: undefined,
  ...fields,
});

/** The block's own transaction, and behind it a Cosmos transaction of these words. */
function withCosmos(
  block: JournaledBlock,
  said: { readonly changes: readonly BalanceChange[]; readonly feeAtoken: bigint },
): JournaledBlock {
  const [own] = block.transactions;
  if (own === undefined) throw new Error("the block is empty");
  const { changes, feeAtoken } = said;
  const cosmos = { gasLimit: 1n, feeAtoken, memo: "", messages: [], dataIndex: 1 };
  const hash = `0x${"c0".repeat(32)}` as typeof own.hash;
  return { ...block, transactions: [own, { ...own, hash, index: 1, changes, cosmos }] };
}

describe("an audit of execution names", () => {
  it("coins of an account that has none, moved by a Cosmos transaction", async () => {
    const found = await difference(
      claiming((block) => withCosmos(block, { changes: [move({})], feeAtoken: 0n })),
    );
    expect(found).toEqual({
      height: 1,
      transaction: { index: 1, hash: `0x${"c0".repeat(32)}` },
      field: `balance of ${POOR}`,
      chain: (-CLAIMED).toString(),
      audit: "at least 0",
    });
  });

  it("coins of an account that has none, moved or burned by a module", async () => {
    for (const change of [move({}), move({ reason: "SLASH", to: undefined })]) {
      const found = await difference(
        claiming((block) => ({ ...block, blockChanges: [...block.blockChanges, change] })),
      );
      expect(found).toMatchObject({
        height: 1,
        transaction: undefined,
        field: `balance of ${POOR}`,
        audit: "at least 0",
      });
    }
  });

  it("a fee that nobody paid to the collector", async () => {
    const feeAtoken = 10n ** 30n;
    const found = await difference(
      claiming((block) => withCosmos(block, { changes: [], feeAtoken })),
    );
    expect(found).toMatchObject({
      height: 1,
      transaction: undefined,
      field: `balance of ${genesis.params.feeCollector}`,
      audit: "at least 0",
    });
  });

  it("a transaction whose signature is nobody's", async () => {
    const bytes = await node.rawBlock(1);
    const [header, [raw], uncles] = decodeRlp(bytes) as [string[], [string[]], string[]];
    const broken = raw.with(7, `0x${"ff".repeat(32)}`);
    const root = await listRoot([hexToBytes(encodeRlp(broken))]);
    const changed = encodeRlp([header.with(4, root), [broken], uncles]);
    const own = keccak256(encodeRlp(header));
    const found = await difference({
      rawBlock: async () => hexToBytes(changed),
      journal: () => node.journal(own as Parameters<AuditNode["journal"]>[0]),
    });
    expect(found).toMatchObject({ height: 1, transaction: { index: 0 }, field: "validity" });
  });
});

it("an audit of execution counts what it takes as the node says", async () => {
  const coins = (amount: bigint) => [{ denom: "atoken", amount: amount.toString() }];
  const [fromAddress, toAddress] = [toBech32(parseAddress(sender.address)), toBech32(RICHER)];
  const [signed] = signWithCosmJs(PHRASE, [
    {
      messages: [
        {
          typeUrl: "/cosmos.bank.v1beta1.MsgSend",
          value: { fromAddress, toAddress, amount: coins(7n) },
        },
      ],
      chainId: genesis.cosmosChainId,
      sequence: 0,
      gas: 200_000,
      fee: coins(200_000n * 25_000_000n),
    },
  ]);
  if (signed === undefined) throw new Error("not signed");
  await served.mine([], [signed.raw]);
  const agreed = { difference: undefined, transactions: 1 };
  expect(await audit({}, 1)).toMatchObject({ ...agreed, cosmosTransactions: 0 });
  expect(await audit({}, 2)).toMatchObject({ ...agreed, cosmosTransactions: 1 });
});
