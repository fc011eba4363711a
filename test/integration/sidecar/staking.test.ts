/**
 * Stake, rewards and votes over Rosetta on a chain that a test mines: built offline, found in the
 * mined transaction, and every claim reconciled in every block, with slashes, nothing exempt. What
 * claims are is also asked of the chain's own contracts, by ethers.
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { Contract, getAddress, JsonRpcProvider, SigningKey } from "ethers";
import { SYSTEM_ADDRESSES } from "../../../chain/networks.js";
import { signingKeyOf } from "../../../chain/consensus/ed25519.js";
import { validatorAddress } from "../../../chain/consensus/validator-set.js";
import type { BlockFacts } from "../../../node/modules/modules.js";
import { TokenRegistry } from "../../../sidecar/rosetta/token-registry.js";
import {
  accountOf,
  nativeGenesis,
  operatorText,
  published,
  wallets,
} from "../../helpers/chains/native-chain.js";
import { ServedChain } from "../../helpers/chains/served-chain.js";
import { runMeshCheck } from "../../mesh/run-mesh-check.js";
import { signatureOf } from "../../unit/sidecar/construction-api/steps.js";
import { call, type Online, onlineServer } from "../../unit/sidecar/servers.js";

const ONE = 10n ** 18n;
const TOKEN = { symbol: "TOKEN", decimals: 18 };
const CLAIM = { symbol: "TOKEN_CLAIM", decimals: 18, metadata: { claim: "TOKEN" } };
const STAKING = "0x0000000000000000000000000000000000000800";
const POOL = getAddress(SYSTEM_ADDRESSES.validatorsPool);

type Json = Readonly<Record<string, unknown>>;
interface WireOperation {
  readonly type: string;
  readonly status?: string;
  readonly account: {
    readonly address: string;
    readonly sub_account?: { readonly address: string; readonly metadata?: Json };
  };
  readonly amount: {
    readonly value: string;
    readonly currency: { readonly symbol: string; readonly metadata?: Json };
  };
  readonly metadata?: Json;
}

let chain: ServedChain;
let online: Online;
let provider: JsonRpcProvider;
let tip = 0;

const shares = (validator: number) => ({
  symbol: "TOKEN_SHARE",
  decimals: 36,
  metadata: { validator: operatorText(validator) },
});
const addressOf = (wallet: number) => getAddress(accountOf(wallet));
const own = (wallet: number) => ({ address: addressOf(wallet) });
const sub = (wallet: number, name: string) => ({ ...own(wallet), sub_account: { address: name } });
const stake = (validator: number) => ({
  address: STAKING,
  sub_account: { address: "stake", metadata: { validator: operatorText(validator) } },
});

/** Operations of one type; each but the first is related to it. */
const operations = (
  type: string,
  ...sides: readonly (readonly [
    account: object,
    value: bigint,
    currency: object,
    metadata?: object,
  ])[]
) =>
  sides.map(([account, value, currency, metadata], index) => ({
    operation_identifier: { index },
    ...(index === 0 ? {} : { related_operations: [{ index: 0 }] }),
    type,
    account,
    amount: { value: value.toString(), currency },
    ...(metadata === undefined ? {} : { metadata }),
  }));

const intents = {
  delegate: (wallet: number, validator: number, amount: bigint) =>
    operations("DELEGATE", [own(wallet), -amount, TOKEN], [stake(validator), amount, CLAIM]),
  undelegate: (wallet: number, validator: number, amount: bigint) =>
    operations(
      "UNDELEGATE",
      [stake(validator), -amount, CLAIM],
      [sub(wallet, "unbonding"), amount, CLAIM],
    ),
  redelegate: (wallet: number, source: number, destination: number, amount: bigint) =>
    operations(
      "REDELEGATE",
      [own(wallet), 0n, TOKEN],
      [stake(source), -amount, CLAIM],
      [stake(destination), amount, CLAIM],
    ),
  cancel: (wallet: number, validator: number, amount: bigint, height: number) =>
    operations(
      "CANCEL_UNBONDING",
      [sub(wallet, "unbonding"), -amount, CLAIM, { creation_height: `${height}` }],
      [stake(validator), amount, CLAIM],
    ),
  withdraw: (wallet: number, validator: number) =>
    operations("CLAIM", [sub(wallet, "staked"), 0n, shares(validator)]),
  commission: (wallet: number) => operations("CLAIM", [sub(wallet, "commission"), 0n, CLAIM]),
  vote: (wallet: number, proposal: number, option: string) =>
    operations("VOTE", [own(wallet), 0n, TOKEN, { proposal_id: `${proposal}`, option }]),
};

async function good(path: string, fields: Record<string, unknown>) {
  const { status, body } = await call(online.server, path, fields);
  expect({ path, status, body }).toMatchObject({ status: 200 });
  return body;
}

/** From operations to signed bytes, each step read back. */
async function build(wallet: number, intent: readonly object[], metadata?: object) {
  const key = new SigningKey(wallets[wallet]?.privateKey ?? "");
  const asked = { operations: intent, ...(metadata === undefined ? {} : { metadata }) };
  const { options } = await good("/construction/preprocess", asked);
  const facts = await good("/construction/metadata", { options });
  const made = await good("/construction/payloads", {
    operations: intent,
    metadata: facts.metadata,
  });
  const unsigned = { signed: false, transaction: made.unsigned_transaction };
  expect((await good("/construction/parse", unsigned)).operations).toEqual(intent);
  const { signed_transaction: signed } = await good("/construction/combine", {
    unsigned_transaction: made.unsigned_transaction,
    signatures: [signatureOf(key, made.payloads[0])],
  });
  const parsed = await good("/construction/parse", { signed: true, transaction: signed });
  expect(parsed.operations).toEqual(intent);
  expect(parsed.account_identifier_signers).toEqual([own(wallet)]);
  return signed;
}

async function mine(raws: readonly string[] = [], facts?: BlockFacts): Promise<number> {
  const { committed } = await chain.mine(raws, [], facts);
  expect(committed.receipts.map(({ status }) => status)).toEqual(raws.map(() => 1));
  tip = committed.block.header.height;
  await online.indexed(tip);
  return tip;
}

/** Has an intent mined, and finds it in what happened. */
async function act(wallet: number, intent: readonly object[]): Promise<WireOperation[]> {
  const signed = await build(wallet, intent);
  const { transaction_identifier: id } = await good("/construction/submit", {
    signed_transaction: signed,
  });
  const index = await mine([signed]);
  const found = (await blockAt(index)).find((one) => one.hash === id.hash)?.operations ?? [];
  for (const { type, account, amount, metadata } of intent as WireOperation[]) {
    const same = { type, account, amount, status: "SUCCESS" };
    const wanted = metadata === undefined ? same : { ...same, metadata };
    expect(found).toContainEqual(expect.objectContaining(wanted));
  }
  return found;
}

async function blockAt(index: number) {
  const { block } = await good("/block", { block_identifier: { index } });
  return block.transactions.map((one) => ({
    hash: one.transaction_identifier.hash,
    operations: one.operations as unknown as WireOperation[],
  }));
}

async function balanceOf(account: object, index: number, currencies?: readonly object[]) {
  const asked = { account_identifier: account, block_identifier: { index } };
  const body = await good(
    "/account/balance",
    currencies === undefined ? asked : { ...asked, currencies },
  );
  expect(body.block_identifier.index).toBe(index);
  return { values: body.balances.map(({ value }) => BigInt(value)), body };
}

const validatorKey = (index: number) =>
  validatorAddress(signingKeyOf(Buffer.alloc(32, index + 1)).publicKey);

/** Signatures of the block before: validator 1 signs or not. */
const votes = (isSigned: boolean): BlockFacts => ({
  votes: [0, 1].map((index) => ({
    consensusAddress: validatorKey(index),
    power: index === 0 ? 100n : 50n,
    isSigned: index === 0 || isSigned,
  })),
  misbehavior: [],
});

const contract = (name: "IStaking" | "IDistribution" | "IGov") => {
  const { abi, address } = published(name);
  return new Contract(address, abi, provider);
};

beforeAll(async () => {
  chain = await ServedChain.open(
    nativeGenesis({
      "staking.unbonding_time": "60s",
      "slashing.signed_blocks_window": "4",
      "slashing.downtime_jail_duration": "1s",
      "distribution.community_tax": "0.02",
      "gov.min_deposit": "1000",
    }),
  );
  provider = new JsonRpcProvider(chain.url, 6940, { staticNetwork: true, cacheTimeout: -1 });
  online = onlineServer(chain.url, { registry: new TokenRegistry([]) });
  await online.server.start();
  await online.indexed(0);
});

afterAll(async () => {
  provider?.destroy();
  await online?.server.stop();
  await online?.rpc.close();
  await chain?.close();
});

describe("stake over Rosetta", () => {
  it("is built offline and found in what is mined", async () => {
    await act(2, intents.delegate(2, 0, 5n * ONE));
    await act(3, intents.delegate(3, 1, 7n * ONE));
    await act(4, intents.delegate(4, 1, 3n * ONE + 1n));
    await act(3, intents.redelegate(3, 1, 0, 2n * ONE));
    await act(4, intents.undelegate(4, 1, ONE));
    await act(4, intents.cancel(4, 1, ONE / 4n, tip));
    const paid = await act(2, intents.withdraw(2, 0));
    const claimed = paid.filter(({ type }) => type === "CLAIM").map(({ amount }) => amount);
    expect(claimed.filter(({ value }) => BigInt(value) > 0n)).toHaveLength(1);
    await act(0, intents.commission(0));
    const propose = await contract("IGov")
      .getFunction("submitProposal")
      .populateTransaction(
        addressOf(2),
        Buffer.from(JSON.stringify({ title: "T", summary: "S", metadata: "words" })),
        [{ denom: "atoken", amount: 1_000n }],
      );
    const nonce = await provider.getTransactionCount(addressOf(2), "pending");
    const fields = { type: 0, chainId: 6940, nonce, gasPrice: 1_000n, gasLimit: 3_000_000n };
    await mine([(await wallets[2]?.signTransaction({ ...fields, ...propose })) ?? ""]);
    await act(2, intents.vote(2, 1, "no_with_veto"));
  });

  it("bears slashes, for which nobody sends a transaction", async () => {
    const leave = async (facts: BlockFacts) => {
      const signed = await build(4, intents.undelegate(4, 1, ONE / 100n));
      await mine([signed], facts);
    };
    await mine([], votes(true));
    for (let missed = 0; missed < 5; missed += 1) await leave(votes(false));
    await mine([], votes(false));
    const misbehavior = [{ consensusAddress: validatorKey(1), height: 2, power: 50n }];
    await mine([], { votes: [], misbehavior });
    // Entries of before bear it when they end, and the redelegation, too.
    for (let passed = 0; passed < 36; passed += 1) await mine();
    const kinds = new Set<string>();
    for (let index = 0; index <= tip; index += 1) {
      for (const { operations: all } of await blockAt(index)) {
        for (const { type, account } of all)
          kinds.add(`${type} ${account.sub_account?.address ?? ""}`);
      }
    }
    const expected = ["SLASH ", "SLASH stake", "SLASH unbonding", "UNBOND_COMPLETE unbonding"];
    expect([...kinds]).toEqual(expect.arrayContaining(expected));
    expect([...kinds]).toEqual(expect.arrayContaining(["GENESIS staked", "SHARES staked"]));
    expect((await balanceOf(sub(4, "unbonding"), tip)).values).toEqual([0n]);
  });

  it("is reconciled by mesh-check in every block, nothing exempt", async () => {
    const url = `http://127.0.0.1:${online.server.port}`;
    const { code, document } = await runMeshCheck(["--url", url, "--node", chain.url, "--json"]);
    expect(document.faults).toEqual([]);
    expect(code).toBe(0);
    expect(document.to).toBe(tip);
    expect(document.currencies).toEqual(expect.arrayContaining(["TOKEN", "TOKEN_CLAIM"]));
  });

  it("changes claims by as much as the coins of their pools, in every block", async () => {
    const sums = { stake: 0n, pool: 0n };
    for (let index = 0; index <= tip; index += 1) {
      const coins = { stake: 0n, pool: 0n };
      const claims = { stake: 0n, pool: 0n };
      for (const { account, amount, status } of (await blockAt(index)).flatMap(
        (one) => one.operations,
      )) {
        const value = status === "SUCCESS" ? BigInt(amount.value) : 0n;
        const name = account.sub_account?.address;
        if (amount.currency.symbol === "TOKEN") {
          if (account.address === STAKING) coins.stake += value;
          if (account.address === POOL) coins.pool += value;
        } else if (name === "stake" || name === "unbonding") claims.stake += value;
        else if (amount.currency.symbol === "TOKEN_CLAIM") claims.pool += value;
      }
      expect({ index, claims }).toEqual({ index, claims: coins });
      sums.stake += claims.stake;
      sums.pool += claims.pool;
    }
    expect(sums.stake).toBe(await provider.getBalance(STAKING));
    expect(sums.pool).toBe(await provider.getBalance(POOL));
  });

  it("is what the chain's own contracts say, at every height", async () => {
    const [staking, distribution] = [contract("IStaking"), contract("IDistribution")];
    for (let index = 1; index <= tip; index += 4) {
      const blockTag = { blockTag: index };
      for (const wallet of [0, 2, 3, 4]) {
        const { values } = await balanceOf(sub(wallet, "staked"), index, [shares(0), shares(1)]);
        const { body } = await balanceOf(sub(wallet, "staked"), index);
        const leaving = await balanceOf(sub(wallet, "unbonding"), index);
        let afterSlashes = 0n;
        for (const validator of [0, 1]) {
          const pair = [addressOf(wallet), operatorText(validator)] as const;
          const [held, worth] = await staking.getFunction("delegation")(...pair, blockTag);
          expect({ index, wallet, validator, shares: values[validator] }).toEqual({
            index,
            wallet,
            validator,
            shares: held,
          });
          const told = delegationsOf(body.metadata).find(
            (one) => one["validator"] === operatorText(validator),
          );
          expect(told?.["amount"] ?? "0").toBe(worth.amount.toString());
          const entries = await staking.getFunction("unbondingDelegation")(...pair, blockTag);
          for (const { balance } of entries.getValue("entries")) afterSlashes += balance;
        }
        const told = entriesOf(leaving.body.metadata);
        const sumOf = (name: string) => told.reduce((sum, one) => sum + BigInt(one[name] ?? 0), 0n);
        expect(sumOf("after_slashes")).toBe(afterSlashes);
        expect(sumOf("amount")).toBe(leaving.values[0]);
      }
      for (const validator of [0, 1]) {
        const record = await staking.getFunction("validator")(addressOf(validator), blockTag);
        expect((await balanceOf(stake(validator), index)).values).toEqual([record.tokens]);
        const { body, values } = await balanceOf(sub(validator, "commission"), index);
        const [coin] = await distribution
          .getFunction("validatorCommission")(operatorText(validator), blockTag)
          .then((coins: readonly { readonly amount: bigint }[]) => coins);
        expect(body.metadata["withdrawable"]).toBe(((coin?.amount ?? 0n) / ONE).toString());
        expect((values[0] ?? 0n) <= BigInt(body.metadata["withdrawable"] ?? "")).toBe(true);
      }
    }
  });

  it("is found by its sub-accounts", async () => {
    const blocks = await Promise.all(Array.from({ length: tip + 1 }, (_, index) => blockAt(index)));
    const all = blocks.flat();
    const count = (holds: (operation: WireOperation) => boolean) =>
      all.filter((one) => one.operations.some(holds)).length;
    const text = (account: object) => JSON.stringify(account);
    for (const account of [
      sub(4, "unbonding"),
      sub(3, "staked"),
      stake(1),
      own(4),
      own(3),
      { address: POOL },
    ]) {
      const found = await good("/search/transactions", { account_identifier: account, limit: 2 });
      const expected = count((one) => text(one.account) === text(account));
      expect({ account, total: (found as unknown as Json)["total_count"] }).toEqual({
        account,
        total: expected,
      });
    }
    const { address } = own(4);
    const anywhere = await good("/search/transactions", { address, limit: 1 });
    expect((anywhere as unknown as Json)["total_count"]).toBe(
      count((one) => one.account.address === address),
    );
    const ofShares = await good("/search/transactions", { currency: shares(1) });
    expect((ofShares as unknown as Json)["total_count"]).toBe(
      count((one) => text(one.amount.currency) === text(shares(1))),
    );
  });

  it("refuses what no account has, by listed numbers", async () => {
    const ask = async (account: object, currencies: readonly object[] = []) =>
      (await call(online.server, "/account/balance", { account_identifier: account, currencies }))
        .body.code;
    expect(await ask(sub(2, "delegated"))).toBe(207);
    expect(await ask(sub(2, "stake"))).toBe(207);
    expect(await ask({ ...stake(0), address: addressOf(2) })).toBe(207);
    expect(await ask(sub(2, "rewards"))).toBe(207);
    const upper = { address: "stake", metadata: { validator: operatorText(0).toUpperCase() } };
    expect(await ask({ address: STAKING, sub_account: upper })).toBe(206);
    expect(await ask(sub(2, "staked"), [TOKEN])).toBe(208);
    expect(await ask(sub(2, "unbonding"), [shares(0)])).toBe(208);
    expect(await ask(own(2), [CLAIM])).toBe(208);
    expect(await ask(sub(2, "unbonding"), [{ symbol: "TOKEN_CLAIM", decimals: 18 }])).toBe(208);
    const code = async (path: string, fields: Record<string, unknown>) =>
      (await call(online.server, path, fields)).body.code;
    const preprocess = (list: readonly object[], metadata?: object) =>
      code("/construction/preprocess", { operations: list, ...(metadata && { metadata }) });
    const [first, second] = intents.delegate(2, 0, 5n);
    expect(await preprocess([first ?? {}])).toBe(302);
    expect(await preprocess([first ?? {}, { ...second, type: "UNDELEGATE" }])).toBe(303);
    expect(await preprocess(intents.delegate(2, 0, 0n))).toBe(302);
    expect(await preprocess(intents.delegate(2, 0, 5n), { memo: "text" })).toBe(304);
    expect(await preprocess(intents.redelegate(2, 0, 0, 5n))).toBe(302);
    expect(await preprocess(intents.vote(2, 1, "maybe"))).toBe(302);
    const { options } = await good("/construction/preprocess", {
      operations: intents.undelegate(2, 0, 5n * ONE + 1n),
    });
    expect(await code("/construction/metadata", { options })).toBe(314);
    const rich = await good("/construction/preprocess", {
      operations: intents.delegate(2, 0, 10n ** 24n),
    });
    expect(await code("/construction/metadata", { options: rich.options })).toBe(314);
  });
});

function delegationsOf(metadata: unknown): Record<string, string>[] {
  return (metadata as { delegations: Record<string, string>[] }).delegations;
}

function entriesOf(metadata: unknown): Record<string, string>[] {
  return (metadata as { entries: Record<string, string>[] }).entries;
}
