/**
 * Full blocks of programs whose effects stay, executed, sealed and stored in this process, timed by the
 * clock and by the processor time of all threads, for which other programs on the machine count for
 * little. Signatures are made and checked outside of what is timed.
 */
import type { Address } from "../../../chain/address.js";
import type { BlockTransaction } from "../../../chain/block.js";
import { contractAddressOf } from "../../../chain/evm/contract-address.js";
import { decodeTransaction } from "../../../chain/transaction.js";
import { APP_FILE } from "../../../node/settings/config.js";
import { databaseSettings, memoryBytes } from "../../../node/settings/memory-config.js";
import { loadConfig } from "../../../runtime/config/config.js";
import { createLocalGenesis, type GenesisAccount } from "../../../node/settings/genesis.js";
import { ExecutionChain } from "../../helpers/chains/execution-chain.js";
import { approval, type Exchange, planExchange, swap } from "../bench-exchange.js";
import { MINT_GAS_LIMIT, mintDatas, tokenBytecode, tokenTransfer } from "../bench-token.js";
import {
  addressOf,
  CALLED_CODE,
  CALLED_CONTRACTS,
  COMMIT_CASES,
  type CommitCase,
  FIRST_TURN,
  REPEATED_TURNS,
  type Turns,
  turnsCode,
  turnsData,
} from "./cases.js";
import { type Payment, type Sender, signNext } from "../senders.js";

/** Of plain transactions: nobody has many in a block. */
export const SENDERS = 2_000;
/** Of a plain transfer. */
export const TRANSFER_GAS = 21_000n;
/** Of all turns of a transaction: it must not run out of what it may name. */
export const TURNS_GAS = 29_000_000;
/** Of a turn that reads a slot and changes it, at least. */
const REWRITE_GAS = 5_000;
const MOST_GAS = 30_000_000n;
const BLOCK_GAS = 600_000_000;
const KEY = Buffer.alloc(32, 1).toString("base64");

/** A block that was timed. */
export interface TimedBlock {
  readonly transactions: number;
  readonly gasUsed: bigint;
  readonly computeMs: number;
  readonly cpuMs: number;
  readonly clockMs: number;
}

/** What fills the blocks of a case: its next transaction, signed. */
export interface Filling {
  readonly name: string;
  /** Gas of one at least: so many are made ready. */
  readonly gas: number;
  readonly next: (block: number) => BlockTransaction;
  readonly grows: boolean;
  /** Those that did not fit into the block before. */
  readonly ready: BlockTransaction[];
}

/** Contract of the case at a place of the list. */
const contractOf = (index: number): Address => addressOf(0xc0_de_00_00 + index);

/** A chain with a node's usual settings, whose genesis has the senders, rich, and the contracts of the cases. */
export function openChain(senders: readonly Sender[]): Promise<ExecutionChain> {
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
  const { memory, store } = loadConfig({ home: "/nowhere", env: {} }, APP_FILE);
  return ExecutionChain.open(
    { ...plain, alloc },
    { memory: memoryBytes(memory), database: databaseSettings(memory, store) },
  );
}

/** A sender's next transaction. */
export function signed(sender: Sender, payment: Payment): BlockTransaction {
  return { tx: decodeTransaction(signNext(sender, payment)), from: sender.address };
}

/** Turns that nobody had before, for cases that go on behind each other. */
let unusedTurn = FIRST_TURN + CALLED_CONTRACTS;

/** What fills blocks of a case of the list. */
export function fillingOf(item: CommitCase, index: number, senders: readonly Sender[]): Filling {
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
  if (item.isRewritten === true) {
    const from = take(count, 0);
    let value = 1;
    const next = () => sign(turnsPayment(index, { from, to: from + count, value: ++value }));
    // Only the first change of a slot takes all that the case names.
    return { name, gas: count * REWRITE_GAS, grows, next, ready };
  }
  const next = (block: number) => {
    const from = take(count, block);
    return sign(turnsPayment(index, { from, to: from + count, value: block + 2 }));
  };
  return { name, gas: count * gas, grows, next, ready };
}

/** Calls the contract of the case at a place of the list. */
export function turnsPayment(index: number, turns: Turns): Payment {
  const data = turnsData(turns);
  return { to: contractOf(index), valueAtoken: 0n, data, gasLimit: MOST_GAS };
}

/** Transfers of a token from each holder to the next. */
export function tokenFilling(token: Address, holders: readonly Sender[]): Filling {
  const name = "ERC-20 transfers between holders";
  return { name, gas: 40_000, ...roundOf(holders, (to) => tokenTransfer(token, to)) };
}

/** Swaps of each holder, for the next one. */
export function swapFilling(exchange: Exchange, holders: readonly Sender[]): Filling {
  const name = "Uniswap V2 swaps of holders";
  return { name, gas: 90_000, ...roundOf(holders, (to) => swap(exchange, to)) };
}

/** Each holder does something for the next one, round and round. */
function roundOf(
  holders: readonly Sender[],
  payment: (to: Address) => Payment,
): Omit<Filling, "name" | "gas"> {
  let sent = 0;
  const next = () => {
    const sender = holders[sent % holders.length];
    const to = holders[(sent + 1) % holders.length];
    if (sender === undefined || to === undefined) throw new Error("nobody holds the token");
    sent += 1;
    return signed(sender, payment(to.address));
  };
  return { grows: false, next, ready: [] };
}

/** Deploys an exchange whose first token all of them hold, and may swap. */
export async function deployExchange(
  chain: ExecutionChain,
  holders: readonly Sender[],
): Promise<Exchange> {
  const [owner] = holders;
  if (owner === undefined) throw new Error("nobody deploys");
  const exchange = planExchange(owner);
  const [token] = exchange.tokens;
  const mints = mintDatas(holders.map(({ address }) => address)).map((data) => {
    return { to: token, data, gasLimit: MINT_GAS_LIMIT, valueAtoken: 0n };
  });
  const ready = [...exchange.payments, ...mints].map((payment) => signed(owner, payment));
  for (const holder of holders) ready.push(signed(holder, approval(token, exchange.router)));
  while (ready.length > 0) ready.splice(0, (await chain.fill(ready)).count);
  return exchange;
}

/** Deploys a token that all of them hold. */
export async function deployToken(
  chain: ExecutionChain,
  holders: readonly Sender[],
): Promise<Address> {
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

/** Makes blocks that grow the state. */
export async function grow(chain: ExecutionChain, filling: Filling, blocks: number): Promise<void> {
  for (let block = 0; block < blocks; block++) await timeBlock(chain, filling, block);
}

/** Fills, seals, stores and publishes a block. */
export async function timeBlock(
  chain: ExecutionChain,
  filling: Filling,
  block: number,
): Promise<TimedBlock> {
  const { ready, gas, next } = filling;
  while (ready.length * gas < BLOCK_GAS + gas) ready.push(next(block));
  const timed = await timedFill(chain, ready);
  ready.splice(0, timed.transactions);
  return timed;
}

/** Fills, seals, stores and publishes a block of those that fit. */
export async function timedFill(
  chain: ExecutionChain,
  ready: readonly BlockTransaction[],
): Promise<TimedBlock> {
  const begin = process.cpuUsage();
  const beginMs = performance.now();
  const { count, gasUsed, computeNs } = await chain.fill(ready);
  const clockMs = performance.now() - beginMs;
  const { user, system } = process.cpuUsage(begin);
  const cpuMs = (user + system) / 1_000;
  return { transactions: count, gasUsed, computeMs: computeNs / 1e6, cpuMs, clockMs };
}
