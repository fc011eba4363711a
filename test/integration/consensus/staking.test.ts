/** Validators with stake: power moves by delegation, who registers joins, who is silent leaves. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import {
  CONSENSUS_PREFIX,
  parseAddress,
  toBech32,
  VALIDATOR_PREFIX,
} from "../../../chain/address.js";
import { blockEvents } from "../../../chain/abci-event.js";
import type { BlockId } from "../../../chain/consensus/block-id.js";
import { signingKeyOf } from "../../../chain/consensus/ed25519.js";
import { orderVotes } from "../../../chain/consensus/evidence.js";
import { VOTE_TYPE, voteSignBytes } from "../../../chain/consensus/vote.js";
import { validatorAddress } from "../../../chain/consensus/validator-set.js";
import { sha256 } from "../../../chain/hashes.js";
import { bytesToHash32 } from "../../../chain/hex.js";
import { delegationRewards } from "../../../node/modules/distribution/rewards.js";
import { Validators } from "../../../node/modules/staking/validator-record.js";
import { MODULE_ACCOUNTS } from "../../../node/modules/system-storage.js";
import type { CometChain } from "../../../node/rpc/comet/ports.js";
import { searchBlocks } from "../../../node/rpc/comet/search/event-search.js";
import { parseQuery } from "../../../node/rpc/comet/search/query.js";
import { EventStore } from "../../../node/store/blocks/event-store.js";
import { JournaledState } from "../../../node/state/journaled-state.js";
import { ClockAhead } from "../../helpers/chains/clock-ahead.js";
import { ValidatorNetwork } from "../../helpers/chains/validator-network.js";
import {
  operatorAt,
  validatorGenesis,
  ValidatorNode,
} from "../../helpers/chains/validator-node.js";
import { signWithCosmJs } from "../../helpers/cosmos/cosmjs.js";
import { until } from "../../helpers/until.js";

const MNEMONIC = "test test test test test test test test test test test junk";
const TOKEN = 10n ** 18n;
const faucet = Wallet.fromPhrase(MNEMONIC);
const from = parseAddress(faucet.address);
const operator = (index: number) => toBech32(operatorAt(index), VALIDATOR_PREFIX);
const coin = (amount: bigint) => ({ denom: "atoken", amount: amount.toString() });
const joiner = Buffer.alloc(32, 0x55);
const joinerKey = signingKeyOf(joiner).publicKey;

const delegateMessage = (index: number, amount: bigint) => ({
  typeUrl: "/cosmos.staking.v1beta1.MsgDelegate",
  value: {
    delegatorAddress: toBech32(from),
    validatorAddress: operator(index),
    amount: coin(amount),
  },
});
const registerMessage = {
  typeUrl: "/cosmos.staking.v1beta1.MsgCreateValidator",
  value: {
    description: { moniker: "joiner", identity: "", website: "", securityContact: "", details: "" },
    commission: {
      rate: "100000000000000000",
      maxRate: "200000000000000000",
      maxChangeRate: "10000000000000000",
    },
    minSelfDelegation: "1",
    delegatorAddress: toBech32(from),
    validatorAddress: toBech32(from, VALIDATOR_PREFIX),
    pubkey: {
      typeUrl: "/cosmos.crypto.ed25519.PubKey",
      value: Array.from(Buffer.concat([Buffer.from([0x0a, 0x20]), joinerKey])),
    },
    value: coin(30n * TOKEN),
  },
};

let net: ValidatorNetwork;
let sequence = 0;

/** Stake comes back when the test has let so much time pass, and not while a busy machine works. */
const UNBONDING_MS = 3_600_000;
const clock = new ClockAhead();

function node(index: number): ValidatorNode {
  const found = net.nodes[index];
  if (found === undefined) throw new Error("no such node");
  return found;
}

/** Has a transaction mined everywhere; what came of it. */
async function send(...messages: readonly { typeUrl: string; value: unknown }[]) {
  const fee = [coin(10_000_000n)];
  const paid = { chainId: "chain_6940-1", gas: 900_000, fee, sequence: sequence++ };
  const [answer] = signWithCosmJs(MNEMONIC, [{ ...paid, messages }]);
  if (answer === undefined) throw new Error("nothing was signed");
  const hash = bytesToHash32(sha256(answer.raw));
  expect(await node(0).pool.submit([answer.raw])).toEqual([hash]);
  const up = () => net.nodes.filter((one) => one !== undefined);
  await until(() => up().every((one) => one.view.locateBySdkHash(hash) !== undefined), {
    timeoutMs: 60_000,
    what: "the transaction",
  });
  const place = node(0).view.locateBySdkHash(hash);
  const { cosmos } = node(0).view.block(place?.height ?? 0)?.block ?? {};
  const found = cosmos?.find(({ index }) => index === place?.index);
  if (place === undefined || found === undefined) throw new Error("the transaction is missing");
  return { ...found, height: place.height };
}

/** Powers that decide a height, by address. */
function powersAt(one: ValidatorNode, height: number) {
  const set = one.consensus.validators(height);
  return new Map(set?.validators.map(({ address, power }) => [address, power]));
}

/** Heights that `block_search` finds. */
function blocksOf({ view, consensus, stores }: ValidatorNode, query: string) {
  const events = new EventStore(stores.database);
  const reads = { view, consensus, events } as unknown as CometChain;
  return searchBlocks(reads, parseQuery(query), new AbortController().signal);
}

/** Attributes of a block's events of a type, as `block_results` has them. */
function eventTexts({ view }: ValidatorNode, height: number, wanted: string) {
  return blockEvents(view.blockChanges(height))
    .filter(({ type }) => type === wanted)
    .map(({ attributes }) => attributes.map(({ key, value }) => `${key}=${value}`));
}

/** Two votes of a validator for one height, round 5 unless it is named. */
function doubleVote({ consensus }: ValidatorNode, seed: Uint8Array, height: number, round = 5) {
  const validators = consensus.validators(height);
  const block = consensus.load(height)?.block;
  const key = signingKeyOf(seed);
  const address = validatorAddress(key.publicKey);
  const index = validators?.indexOf(address) ?? -1;
  const found = validators?.at(index);
  if (validators === undefined || block === undefined || found === undefined) {
    throw new Error("the validator had no vote");
  }
  const { chainId, timeNs } = block.header;
  const vote = (blockId: BlockId | undefined) => {
    const content = { type: VOTE_TYPE.precommit, height, round, blockId, timeNs };
    const signature = key.sign(voteSignBytes(chainId, content));
    return { ...content, validatorAddress: address, validatorIndex: index, signature };
  };
  const [voteA, voteB] = orderVotes(vote(undefined), vote(block.header.lastBlockId));
  const { totalPower } = validators;
  return { voteA, voteB, totalPower, validatorPower: found.power, timeNs };
}

function stateOf(one: ValidatorNode): JournaledState {
  return new JournaledState(one.stores.state);
}

const addressOf = (index: number) =>
  validatorAddress(signingKeyOf(Buffer.alloc(32, index + 1)).publicKey);

beforeAll(async () => {
  const { genesis, seeds } = validatorGenesis(4, {
    faucet: faucet.address,
    params: {
      // Votes that come late are no silence: who is jailed has signed nothing for a whole window.
      "slashing.signed_blocks_window": "20",
      "slashing.min_signed_per_window": "0.05",
      "staking.unbonding_time": `${UNBONDING_MS / 1_000}s`,
    },
  });
  net = new ValidatorNetwork(genesis, [...seeds, joiner]);
  for (const index of [0, 1, 2, 3, 4]) await net.start(index, { clock });
  await net.reach(2);
});

afterAll(() => net.close());

describe("validators with stake", () => {
  it("get power from what is delegated, two heights later", async () => {
    const { result, height, changes } = await send(delegateMessage(1, 7n * TOKEN + 5n));
    expect(result).toMatchObject({ code: 0, log: "" });
    expect(changes.map(({ reason }) => reason)).toEqual(["FEE", "DELEGATE"]);
    const event = result.events.find(({ type }) => type === "delegate");
    expect(event?.attributes.map(({ key, value }) => `${key}=${value}`)).toEqual([
      `delegator=${toBech32(from)}`,
      `validator=${operator(1)}`,
      `amount=${7n * TOKEN + 5n}atoken`,
      `new_shares=${7n * TOKEN + 5n}.000000000000000000`,
      "msg_index=0",
    ]);
    await net.reach(height + 3);
    for (const one of net.nodes) {
      if (one === undefined) continue;
      expect(powersAt(one, height + 1).get(addressOf(1))).toBe(10n);
      expect(powersAt(one, height + 2).get(addressOf(1))).toBe(17n);
      const header = one.consensus.load(height + 1)?.block.header;
      expect(header?.nextValidatorsHash).toBe(one.consensus.validators(height + 2)?.hash());
    }
  });

  it("pay rewards to who asks, out of the validators' pool", async () => {
    const message = {
      typeUrl: "/cosmos.distribution.v1beta1.MsgWithdrawDelegatorReward",
      value: { delegatorAddress: toBech32(from), validatorAddress: operator(1) },
    };
    const validator = new Validators(stateOf(node(0))).of(operatorAt(1));
    expect(delegationRewards(stateOf(node(0)), validator, from)).toBeGreaterThan(0n);
    const { result, changes } = await send(message);
    expect(result).toMatchObject({ code: 0, log: "" });
    const claim = changes.find(({ reason }) => reason === "CLAIM");
    expect(claim).toMatchObject({ from: net.genesis.params.validatorsPool, to: from });
    const event = result.events.find(({ type }) => type === "withdraw_rewards");
    expect(event?.attributes[2]?.value).toBe(`${claim?.amountAtoken}atoken`);
  });

  it("are joined by who registers: the fee is burned, the key signs blocks", async () => {
    const { result, height, changes } = await send(registerMessage);
    expect(result).toMatchObject({ code: 0, log: "" });
    expect(changes.map(({ reason, to, amountAtoken }) => [reason, to, amountAtoken])).toEqual([
      ["FEE", net.genesis.params.feeCollector, 10_000_000n],
      ["REGISTER_BURN", undefined, TOKEN],
      ["DELEGATE", MODULE_ACCOUNTS.staking, 30n * TOKEN],
    ]);
    const event = result.events.find(({ type }) => type === "register_validator");
    expect(event?.attributes.slice(0, 3).map(({ value }) => value)).toEqual([
      toBech32(from, VALIDATOR_PREFIX),
      `${TOKEN}atoken`,
      `${30n * TOKEN}atoken`,
    ]);
    expect(powersAt(node(0), height + 2).get(validatorAddress(joinerKey))).toBe(30n);
    await until(
      () =>
        node(0)
          .consensus.load(node(0).height)
          ?.commit.signatures.some(
            (one) =>
              "validatorAddress" in one && one.validatorAddress === validatorAddress(joinerKey),
          ) === true,
      { timeoutMs: 120_000, what: "its signature" },
    );
  });

  it("get stake back when the time is over, by a change of the block", async () => {
    const { result, height } = await send({
      typeUrl: "/cosmos.staking.v1beta1.MsgUndelegate",
      value: {
        delegatorAddress: toBech32(from),
        validatorAddress: operator(1),
        amount: coin(2n * TOKEN),
      },
    });
    expect(result).toMatchObject({ code: 0, log: "" });
    clock.pass(UNBONDING_MS);
    const completed = async () => {
      for (let at = height; at <= node(0).height; at++) {
        const block = await node(0).view.load(at);
        const found = block?.journal.blockChanges.find(
          ({ reason }) => reason === "UNBOND_COMPLETE",
        );
        if (found !== undefined) return found;
      }
      return undefined;
    };
    await until(async () => (await completed()) !== undefined, { timeoutMs: 120_000 });
    expect(await completed()).toMatchObject({
      from: MODULE_ACCOUNTS.staking,
      to: from,
      amountAtoken: 2n * TOKEN,
    });
    const completion = `complete_unbonding.delegator='${toBech32(from)}'`;
    const [at = 0, ...others] = await blocksOf(node(0), completion);
    expect(others).toEqual([]);
    expect(eventTexts(node(0), at, "complete_unbonding")).toEqual([
      [
        `amount=${2n * TOKEN}atoken`,
        `validator=${operator(1)}`,
        `delegator=${toBech32(from)}`,
        "mode=EndBlock",
      ],
    ]);
    // The same from disk, and in every node.
    const kept = node(0).view.blockChanges(at);
    node(0).stores.blocks.forget(at);
    const stored = node(0).view.blockChanges(at);
    expect(stored.blockChanges).toEqual(kept.blockChanges);
    expect(stored.moduleEvents).toEqual(kept.moduleEvents);
    await net.reach(at);
    for (const one of net.nodes) {
      if (one === undefined) continue;
      expect(one.view.blockChanges(at).moduleEvents).toEqual(kept.moduleEvents);
    }
  });

  it("lose a part for signing twice, even when they left before it was proven", async () => {
    const at = node(0).height - 1;
    const leave = {
      typeUrl: "/cosmos.staking.v1beta1.MsgUndelegate",
      value: {
        delegatorAddress: toBech32(from),
        validatorAddress: toBech32(from, VALIDATOR_PREFIX),
        amount: coin(30n * TOKEN),
      },
    };
    const { result, height } = await send(leave);
    expect(result).toMatchObject({ code: 0, log: "" });
    await net.reach(height + 2);
    const guilty = validatorAddress(joinerKey);
    expect(node(0).consensus.status().height).toBeGreaterThan(height);
    const evidence = doubleVote(node(0), joiner, at);
    expect(await node(0).consensus.addEvidence(evidence)).toBe("new");
    const query = "slash.reason='double_sign'";
    await until(async () => (await blocksOf(node(0), query)).length > 0, {
      timeoutMs: 120_000,
      what: "the slash",
    });
    const [slashed = 0] = await blocksOf(node(0), query);
    const consensusText = toBech32(guilty, CONSENSUS_PREFIX);
    expect(eventTexts(node(0), slashed, "slash")).toEqual([
      [
        `address=${consensusText}`,
        "power=30",
        "reason=double_sign",
        // Its coins are on their way out already: they pay when they come.
        "burned_coins=0atoken",
        "mode=EndBlock",
      ],
    ]);
    clock.pass(UNBONDING_MS);
    const isBack = "complete_unbonding.amount='28500000000000000000atoken'";
    await until(async () => (await blocksOf(node(0), isBack)).length > 0, {
      timeoutMs: 120_000,
      what: "the rest of its stake",
    });
    const [back = 0] = await blocksOf(node(0), isBack);
    const changes = node(0).view.blockChanges(back).blockChanges;
    expect(changes.find(({ reason }) => reason === "SLASH")).toMatchObject({
      from: MODULE_ACCOUNTS.staking,
      to: undefined,
      amountAtoken: (3n * TOKEN) / 2n,
    });
    // The same key never comes back, and nobody has to prove it a second time.
    expect(await node(0).consensus.addEvidence(doubleVote(node(0), joiner, at, 7))).toBe("useless");
    const again = await send(registerMessage);
    expect(again.result).toMatchObject({ code: 4 });
    expect(again.result.log).toContain("never comes back");
  });

  it("leave the set, and lose a part, when they stay silent; the others go on", async () => {
    const before = new Validators(stateOf(node(0))).of(operatorAt(3)).tokens;
    const home = await net.halt(3);
    await until(() => new Validators(stateOf(node(0))).of(operatorAt(3)).isJailed, {
      timeoutMs: 60_000,
      what: "the jail",
    });
    const height = node(0).height;
    expect(new Validators(stateOf(node(0))).of(operatorAt(3)).tokens).toBe((before * 99n) / 100n);
    await net.reach(height + 3);
    expect(powersAt(node(0), height + 2).has(addressOf(3))).toBe(false);
    const reason = "slash.reason='missing_signature'";
    await until(async () => (await blocksOf(node(0), reason)).length > 0, {
      timeoutMs: 10_000,
      what: "the event",
    });
    const [at = 0, ...more] = await blocksOf(node(0), reason);
    expect(more).toEqual([]);
    const consensusText = toBech32(addressOf(3), CONSENSUS_PREFIX);
    expect(eventTexts(node(0), at, "slash")).toEqual([
      [
        `address=${consensusText}`,
        "power=10",
        "reason=missing_signature",
        `jailed=${consensusText}`,
        `burned_coins=${before / 100n}atoken`,
        "mode=EndBlock",
      ],
    ]);
    const missed = await blocksOf(node(0), `liveness.address='${consensusText}'`);
    expect(missed.length).toBeGreaterThan(2);
    await net.start(3, { home, clock });
    await net.reach(node(0).height + 2);
    const hashes = net.nodes.map((one) => one?.view.head());
    const [first] = hashes;
    const common = Math.min(...net.nodes.map((one) => one?.height ?? 0));
    expect(first).toBeDefined();
    const all = new Set(net.nodes.map((one) => one?.stores.blocks.hashOf(common)));
    expect(all.size).toBe(1);
  });
});
