/**
 * Blocks at random, of the EVM, of messages and of what ends by itself: every value that an event of them has is
 * searched for, and what is found is held against a look at every transaction and every block. Two conditions on
 * one type of event hold for one event, as in CometBFT's index.
 */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { blockEvents, transactionEventSteps } from "../../../../chain/abci-event.js";
import { toBech32 } from "../../../../chain/address.js";
import type { AbciEvent } from "../../../../chain/consensus/abci-types.js";
import { present } from "../../../../chain/errors.js";
import { parseHexBytes } from "../../../../chain/hex.js";
import { packMessages, signDraft, type TxMessage } from "../../../../cli/transactions/document.js";
import { Validators } from "../../../../node/modules/staking/validator-record.js";
import { executedPages } from "../../../../node/rpc/comet/chain-reads.js";
import type { CometChain } from "../../../../node/rpc/comet/ports.js";
import {
  searchBlocks,
  searchTransactions,
  transactionValueSteps,
} from "../../../../node/rpc/comet/search/event-search.js";
import { type EventValues, eventValues } from "../../../../node/rpc/comet/search/query-match.js";
import { parseQuery } from "../../../../node/rpc/comet/search/query.js";
import { JournaledState } from "../../../../node/state/journaled-state.js";
import { EventStore } from "../../../../node/store/blocks/event-store.js";
import { loadDescriptors } from "../../../../runtime/files/descriptor-set.js";
import { ExecutionChain } from "../../../helpers/chains/execution-chain.js";
import {
  accountOf,
  nativeGenesis,
  operatorText,
  wallets,
} from "../../../helpers/chains/native-chain.js";
import { createRandom } from "../../../helpers/random.js";
import { CONTRACTS, MoneyPrograms } from "../../execution/native/money-programs.js";
import { allAtOnce } from "../../../../chain/steps/steps.js";

const SEED = Number(process.env["CAUSEWAY_TEST_SEED"] ?? 20_261_128);
const BLOCKS = Number(process.env["CAUSEWAY_SEARCH_BLOCKS"] ?? 14);
/** Queries of several conditions. */
const MIXED = 80;
/** What a transaction or a block is found by beside its events. */
const NO_EVENTS = ["tm.event", "tx.hash", "tx.height", "block.height"];
/** Longer ones are refused as no person's query. */
const MAX_VALUE_CHARACTERS = 150;
const TOKEN = 10n ** 18n;
const PEOPLE = [0, 1, 2, 3, 4].map(accountOf);

const random = createRandom(SEED);
const types = loadDescriptors();
const nonces = wallets.map(() => 0);
let chain: ExecutionChain;
let programs: MoneyPrograms;

/** What is searched, with all that it can be found by: each event by itself, and what is none. */
interface Findable {
  readonly place: string;
  readonly events: readonly EventValues[];
}

const has = ({ events }: Findable, ...values: readonly (readonly [string, string])[]) =>
  events.some((of) => values.every(([tag, value]) => of.get(tag)?.includes(value) === true));

const isEventOf = (tag: string, type: string) =>
  tag.startsWith(`${type}.`) && !NO_EVENTS.includes(tag);

function nextNonce(who: number): number {
  const nonce = nonces[who] ?? 0;
  nonces[who] = nonce + 1;
  return nonce;
}

/** Mostly what succeeds, and something of each module. */
function message(who: number): TxMessage {
  const self = toBech32(accountOf(who));
  const to = toBech32(random.pick([...PEOPLE, ...CONTRACTS]));
  const value = random.pick([1n, 5n, 1_000n, TOKEN / 7n, TOKEN]);
  const amount = { denom: "atoken", amount: value };
  const [validator_address, other] = [operatorText(random.integer(2)), operatorText(0)];
  const pair = { delegator_address: self, validator_address };
  const id = BigInt(1 + random.integer(3));
  const proposal = { messages: [], metadata: "words", title: "t", summary: "s", expedited: false };
  const route = { validator_src_address: validator_address, validator_dst_address: other };
  const [name, fields] = random.pick<readonly [string, TxMessage["fields"]]>([
    ["bank.v1beta1.MsgSend", { from_address: self, to_address: to, amount: [amount] }],
    ["bank.v1beta1.MsgSend", { from_address: self, to_address: self, amount: [amount] }],
    ["staking.v1beta1.MsgDelegate", { ...pair, amount }],
    ["staking.v1beta1.MsgDelegate", { ...pair, amount }],
    ["staking.v1beta1.MsgUndelegate", { ...pair, amount }],
    ["staking.v1beta1.MsgBeginRedelegate", { delegator_address: self, ...route, amount }],
    [
      "distribution.v1beta1.MsgSetWithdrawAddress",
      { delegator_address: self, withdraw_address: to },
    ],
    ["distribution.v1beta1.MsgWithdrawDelegatorReward", pair],
    ["distribution.v1beta1.MsgFundCommunityPool", { amount: [amount], depositor: self }],
    ["gov.v1.MsgSubmitProposal", { ...proposal, initial_deposit: [amount], proposer: self }],
    ["gov.v1.MsgDeposit", { proposal_id: id, depositor: self, amount: [amount] }],
    ["gov.v1.MsgVote", { proposal_id: id, voter: self, option: 1 + random.integer(4) }],
  ]);
  return { name: `cosmos.${name}`, fields };
}

function cosmosTransaction(): Uint8Array {
  const who = random.integer(PEOPLE.length);
  const messages = Array.from({ length: 1 + random.integer(2) }, () => message(who));
  const feeAtoken = random.pick([0n, 5n, 62_500n, 62_501n]);
  const packed = packMessages(types, messages);
  const draft = { messages: packed, memo: "", timeoutHeight: 0n, gasLimit: 2_500_000n, feeAtoken };
  const { cosmosChainId: chainId } = chain.genesis;
  const place = { chainId, sequence: BigInt(nextNonce(who)), mode: "direct" as const };
  return signDraft(types, draft, place, parseHexBytes(wallets[who]?.privateKey));
}

function evmTransaction(): Promise<string> {
  const who = 2 + random.integer(3);
  const isCreation = random.integer(4) === 0;
  return present(wallets[who], "a wallet").signTransaction({
    type: 0,
    chainId: chain.genesis.evmChainId,
    nonce: nextNonce(who),
    gasPrice: random.pick([1n, 1_000n, 1_001n]),
    gasLimit: random.pick([500_000n, 2_000_000n]),
    to: isCreation ? null : random.pick([...CONTRACTS, ...PEOPLE]),
    data: isCreation ? `0x${programs.code()}` : "0x",
    value: random.pick([0n, 1n, 5n, TOKEN]),
  });
}

/** One validator is silent now and then. */
function facts() {
  const inSet = new Validators(new JournaledState(chain.stores.state)).inConsensus();
  const isAway = random.integer(3) === 0;
  const votes = inSet.map(({ consensusAddress, consensusPower: power, operator }) => {
    return { consensusAddress, power, isSigned: !isAway || operator !== accountOf(1) };
  });
  return { votes, misbehavior: [] };
}

beforeAll(async () => {
  const genesis = nativeGenesis({
    "staking.unbonding_time": "8s",
    "slashing.signed_blocks_window": "4",
    "distribution.community_tax": "0.1",
    "gov.min_deposit": "1000",
    "gov.voting_period": "6s",
    "gov.max_deposit_period": "6s",
  });
  programs = new MoneyPrograms(random, genesis.params);
  const alloc = new Map(genesis.alloc);
  const rich = { balanceAtoken: 1_000n * TOKEN, code: undefined, storage: new Map() };
  for (const address of PEOPLE) alloc.set(address, rich);
  for (const address of CONTRACTS) {
    alloc.set(address, { ...rich, balanceAtoken: 5n * TOKEN, code: `0x${programs.code()}` });
  }
  chain = await ExecutionChain.open({ ...genesis, alloc });
  for (let height = 1; height <= BLOCKS; height++) {
    const raws: string[] = [];
    for (let left = random.integer(4); left > 0; left--) raws.push(await evmTransaction());
    const cosmos = Array.from({ length: random.integer(6) }, cosmosTransaction);
    await chain.mine(raws, cosmos, facts());
  }
});

afterAll(() => chain.close());

/** All there is, in the order of the chain. */
function everything(): { readonly transactions: Findable[]; readonly blocks: Findable[] } {
  const [transactions, blocks]: Findable[][] = [[], []];
  const one = (events: readonly AbciEvent[]) => events.map((event) => eventValues([event], {}));
  for (let height = 1; height <= BLOCKS; height++) {
    for (const page of executedPages(chain.view, height)) {
      for (const executed of page ?? []) {
        const all = allAtOnce(transactionValueSteps(height, executed));
        const rest = NO_EVENTS.map((tag) => [tag, all.get(tag) ?? []] as const);
        const events = [...one(allAtOnce(transactionEventSteps(executed))), new Map(rest)];
        transactions?.push({ place: `${height}/${executed.index}`, events });
      }
    }
    const own = eventValues([], { "block.height": `${height}`, "tm.event": "NewBlock" });
    const events = [...one(blockEvents(chain.view.blockChanges(height))), own];
    blocks?.push({ place: `${height}`, events });
  }
  return { transactions: transactions ?? [], blocks: blocks ?? [] };
}

it("finds whatever has a value, and nothing else", async () => {
  const { stores, view } = chain;
  const consensus = { height: () => view.head().height };
  const comet = { view, events: new EventStore(stores.database), consensus };
  const served = comet as unknown as CometChain;
  const { signal } = new AbortController();
  const { transactions, blocks } = everything();
  const placesOf = (all: readonly Findable[], holds: (of: Findable) => boolean) =>
    all.filter(holds).map(({ place }) => place);
  const check = async (text: string, holds: (of: Findable) => boolean) => {
    const query = parseQuery(text);
    const found = await searchTransactions(served, query, signal);
    const places = found.map(({ height, index }) => `${height}/${index}`);
    const heights = (await searchBlocks(served, query, signal)).map(String);
    const wanted = [placesOf(transactions, holds), placesOf(blocks, holds)];
    expect([SEED, text, places, heights]).toEqual([SEED, text, ...wanted]);
  };
  const tags = new Map<string, Set<string>>();
  const valuesOf = ({ events }: Findable) => events.flatMap((of) => [...of]).flatMap(inPairs);
  const inPairs = ([tag, list]: readonly [string, readonly string[]]) =>
    list
      .filter((one) => one.length <= MAX_VALUE_CHARACTERS && !one.includes("'"))
      .map((one) => [tag, one] as const);
  for (const one of [...transactions, ...blocks]) {
    for (const tag of one.events.flatMap((of) => [...of.keys()])) {
      if (!tags.has(tag)) tags.set(tag, new Set());
    }
    for (const [tag, value] of valuesOf(one)) tags.get(tag)?.add(value);
  }
  for (const [tag, values] of tags) {
    await check(`${tag} EXISTS`, ({ events }) =>
      events.some((of) => (of.get(tag) ?? []).length > 0),
    );
    for (const value of values) await check(`${tag}='${value}'`, (of) => has(of, [tag, value]));
  }
  const pairs = [...tags].flatMap(([tag, values]) => [...values].map((one) => [tag, one] as const));
  for (let left = MIXED; left > 0; left--) {
    // Every other one asks for two things that one transaction did, of one type.
    const together = left % 2 === 0 ? valuesOf(random.pick(transactions)) : pairs;
    const first = random.pick(together);
    const type = first[0].split(".")[0] ?? "";
    const near = together.filter(([tag]) => isEventOf(tag, type));
    const second = random.pick(left % 2 === 0 && near.length > 0 ? near : pairs);
    const isOfOne = [first, second].every(([tag]) => isEventOf(tag, type));
    const height = random.integer(BLOCKS + 2);
    const text = `${first[0]}='${first[1]}' AND ${second[0]}='${second[1]}' AND tx.height<=${height}`;
    await check(text, (of) => {
      const isBoth = isOfOne ? has(of, first, second) : has(of, first) && has(of, second);
      const isBelow = (one: EventValues) =>
        one.get("tx.height")?.some((at) => Number(at) <= height) === true;
      return isBoth && of.events.some(isBelow);
    });
  }
  // Searches for nothing would find nothing, too.
  const seen = ["delegate", "unbond", "withdraw_rewards", "proposal_vote", "liveness", "tx_log"];
  const kinds = new Set([...tags.keys()].map((tag) => tag.split(".")[0]));
  expect(seen.filter((kind) => !kinds.has(kind))).toEqual([]);
});
