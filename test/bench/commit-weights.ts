/**
 * Compute units beside time, through commit (D21): full blocks of programs whose effects stay, executed,
 * sealed and stored in this process. Processor time of all threads counts, so that other programs
 * on the machine count for little. Signatures are made and checked outside of what is timed.
 */
import type { Address } from "../../chain/address.js";
import type { BlockTransaction } from "../../chain/block.js";
import { contractAddressOf } from "../../chain/contract-address.js";
import { decodeTransaction } from "../../chain/transaction.js";
import { createLocalGenesis, type GenesisAccount } from "../../node/settings/genesis.js";
import { ExecutionChain } from "../helpers/chains/execution-chain.js";
import { MINT_GAS_LIMIT, mintDatas, tokenBytecode } from "./bench-token.js";
import {
  addressOf,
  CALLED_CODE,
  CALLED_CONTRACTS,
  COMMIT_CASES,
  type CommitCase,
  FIRST_TURN,
  REPEATED_TURNS,
  turnsCode,
  turnsData,
} from "./commit-cases.js";
import { type BenchRow, formatFigure } from "./report.js";
import {
  createSenders,
  erc20TransferData,
  type Payment,
  type Sender,
  signNext,
} from "./senders.js";

/** What the row is run with. */
export interface CommitRowOptions {
  readonly quick: boolean;
  readonly say: (line: string) => void;
}

/** Timed blocks of each case behind one that is not; blocks that grow the state before all, of each case that does. */
const SIZES = {
  full: { blocks: 3, grown: 50 },
  quick: { blocks: 1, grown: 0 },
};

/** Of plain transactions: nobody has many in a block. */
const SENDERS = 2_000;
const TRANSFER_GAS = 21_000n;
const ERC20_GAS = 60_000n;
/** Of a transaction with turns: it must not run out of what it may name. */
const TURNS_GAS = 29_000_000;
const MOST_GAS = 30_000_000n;
const BLOCK_GAS = 600_000_000;
const KEY = Buffer.alloc(32, 1).toString("base64");

/** A block that was timed. */
interface TimedBlock {
  readonly transactions: number;
  readonly gasUsed: bigint;
  readonly computeMs: number;
  readonly cpuMs: number;
}

/** What fills the blocks of a case: its next transaction, signed. */
interface Filling {
  readonly name: string;
  /** Gas of one at least: so many are made ready. */
  readonly gas: number;
  readonly next: (block: number) => BlockTransaction;
  readonly grows: boolean;
  /** Those that did not fit into the block before. */
  readonly ready: BlockTransaction[];
}

/** Runs the row: processor time of the dearest block of all for a second of its units. */
export async function runCommitWeightsRow({ quick, say }: CommitRowOptions): Promise<BenchRow[]> {
  const { blocks, grown } = quick ? SIZES.quick : SIZES.full;
  // Each case has senders of its own: what did not fit into its last block keeps their nonces.
  const cases = COMMIT_CASES.map((item, index) => {
    const count = item.body === undefined ? SENDERS : 1;
    return { item, index, senders: createSenders(count, `commit weights ${index}`) };
  });
  const holders = createSenders(SENDERS, "commit weights, the token");
  const chain = await openChain([...cases.flatMap(({ senders }) => senders), ...holders]);
  try {
    const fillings = cases.map(({ item, index, senders }) => fillingOf(item, index, senders));
    fillings.push(tokenFilling(await deployToken(chain, holders), holders));
    for (const filling of fillings.filter(({ grows }) => grows)) {
      if (grown > 0) say(`${grown} blocks before: ${filling.name}`);
      await grow(chain, filling, grown);
    }
    const timed: { name: string; block: TimedBlock }[] = [];
    for (const filling of fillings) {
      const all: TimedBlock[] = [];
      for (let block = 0; block <= blocks; block++)
        all.push(await timeBlock(chain, filling, block));
      const [dearest] = all.slice(1).toSorted((left, right) => costOf(right) - costOf(left));
      if (dearest === undefined) throw new Error(`${filling.name} was not timed`);
      timed.push({ name: filling.name, block: dearest });
      say(line({ name: filling.name, block: dearest }));
    }
    const sorted = timed.toSorted((left, right) => costOf(right.block) - costOf(left.block));
    const [dearest] = sorted;
    return [
      {
        title: `compute units of ${sorted.length} kinds of blocks through commit, the dearest`,
        unit: "s of units per s",
        ours: dearest === undefined ? 0 : 1 / costOf(dearest.block),
        peer: 1,
        peerName: "its weight",
        aim: { ratio: 0.77 },
        details: sorted.map(line),
      },
    ];
  } finally {
    await chain.close();
  }
}

const costOf = ({ cpuMs, computeMs }: TimedBlock): number => cpuMs / computeMs;

function line({ name, block }: { readonly name: string; readonly block: TimedBlock }): string {
  const { transactions, gasUsed, computeMs, cpuMs } = block;
  return (
    `${costOf(block).toFixed(2).padStart(6)} s per s of units; ${computeMs.toFixed(0)} ms of units, ` +
    `${cpuMs.toFixed(0)} ms, ${formatFigure(Number(gasUsed) / 1e6)} Mgas, ${transactions} transactions  ${name}`
  );
}

/** Contract of the case at a place of the list. */
const contractOf = (index: number): Address => addressOf(0xc0_de_00_00 + index);

function openChain(senders: readonly Sender[]): Promise<ExecutionChain> {
  const plain = createLocalGenesis({
    network: "testnet",
    faucet: addressOf(0xfa_ce),
    genesisTimeMs: 1_750_000_000_000,
    validators: [{ address: addressOf(0xff_ff), publicKey: KEY, power: 1 }],
  });
  const alloc = new Map(plain.alloc);
  const account = (code: string | undefined): GenesisAccount => ({
    balanceAtoken: 10n ** 24n,
    code: code === undefined ? undefined : `0x${code}`,
    storage: new Map(),
  });
  for (const { address } of senders) alloc.set(address, account(undefined));
  for (const [index, { body }] of COMMIT_CASES.entries()) {
    if (body !== undefined) alloc.set(contractOf(index), account(turnsCode(body)));
  }
  for (let turn = 0; turn < CALLED_CONTRACTS; turn++) {
    alloc.set(addressOf(FIRST_TURN + turn), account(CALLED_CODE));
  }
  return ExecutionChain.open({ ...plain, alloc });
}

function signed(sender: Sender, payment: Payment): BlockTransaction {
  return { tx: decodeTransaction(signNext(sender, payment)), from: sender.address };
}

/** Turns that nobody had before, for cases that go on behind each other. */
let unusedTurn = FIRST_TURN + CALLED_CONTRACTS;

function fillingOf(item: CommitCase, index: number, senders: readonly Sender[]): Filling {
  let sent = 0;
  const sign = (payment: Payment): BlockTransaction => {
    const sender = senders[sent++ % senders.length];
    if (sender === undefined) throw new Error("nobody sends");
    return signed(sender, payment);
  };
  const { name, body, gas, grows = false, isRepeated, callsContracts } = item;
  const start = callsContracts === true ? FIRST_TURN : unusedTurn;
  if (isRepeated === true && callsContracts !== true) unusedTurn += REPEATED_TURNS;
  const place = { turn: start, block: 0 };
  const take = (count: number, block: number): number => {
    if (isRepeated !== true) {
      unusedTurn += count;
      return unusedTurn - count;
    }
    const most = callsContracts === true ? CALLED_CONTRACTS : REPEATED_TURNS;
    if (place.block !== block || place.turn + count > start + most) place.turn = start;
    place.block = block;
    place.turn += count;
    return place.turn - count;
  };
  const ready: BlockTransaction[] = [];
  if (body === undefined) {
    const next = (block: number) => sign({ to: addressOf(take(1, block)), gasLimit: TRANSFER_GAS });
    return { name, gas, grows, next, ready };
  }
  const count = Math.floor(TURNS_GAS / gas);
  const next = (block: number) => {
    const from = take(count, block);
    const data = turnsData({ from, to: from + count, value: block + 2 });
    return sign({ to: contractOf(index), valueAtoken: 0n, data, gasLimit: MOST_GAS });
  };
  return { name, gas: count * gas, grows, next, ready };
}

function tokenFilling(token: Address, holders: readonly Sender[]): Filling {
  let sent = 0;
  const next = () => {
    const sender = holders[sent % holders.length];
    const to = holders[(sent + 1) % holders.length];
    if (sender === undefined || to === undefined) throw new Error("nobody holds the token");
    sent += 1;
    const data = erc20TransferData(to.address);
    return signed(sender, { to: token, valueAtoken: 0n, data, gasLimit: ERC20_GAS });
  };
  return { name: "ERC-20 transfers between holders", gas: 40_000, grows: false, next, ready: [] };
}

async function deployToken(chain: ExecutionChain, holders: readonly Sender[]): Promise<Address> {
  const [owner] = holders;
  if (owner === undefined) throw new Error("nobody deploys");
  const token = contractAddressOf(owner.address, owner.nextNonce);
  const payments: Payment[] = [
    { to: undefined, data: tokenBytecode(), gasLimit: 3_000_000n },
    ...mintDatas(holders.map(({ address }) => address)).map((data) => {
      return { to: token, data, gasLimit: MINT_GAS_LIMIT };
    }),
  ];
  const ready = payments.map((payment) => signed(owner, { ...payment, valueAtoken: 0n }));
  while (ready.length > 0) ready.splice(0, (await chain.fill(ready)).count);
  return token;
}

/** Makes blocks of the cases that grow the state, so many of each. */
async function grow(chain: ExecutionChain, filling: Filling, blocks: number): Promise<void> {
  for (let block = 0; block < blocks; block++) await timeBlock(chain, filling, block);
}

/** Fills, seals, stores and publishes a block. */
async function timeBlock(
  chain: ExecutionChain,
  filling: Filling,
  block: number,
): Promise<TimedBlock> {
  const { ready, gas, next } = filling;
  while (ready.length * gas < BLOCK_GAS + gas) ready.push(next(block));
  const begin = process.cpuUsage();
  const { count, gasUsed, computeNs } = await chain.fill(ready);
  const { user, system } = process.cpuUsage(begin);
  ready.splice(0, count);
  return {
    transactions: count,
    gasUsed,
    computeMs: computeNs / 1e6,
    cpuMs: (user + system) / 1_000,
  };
}
