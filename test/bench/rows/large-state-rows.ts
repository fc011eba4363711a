/**
 * Rows of a large state: the rates of transfers and of a token's transfers that a node holds with a
 * million accounts and a million slots, beside the same node with few. Both run at the same time and
 * take turns. Each payment goes to an account, or a holder, that is there and was not touched lately.
 */
import { Interface } from "ethers";
import type { Address } from "../../../chain/address.js";
import { hexToBytes } from "../../../chain/hex.js";
import { tokenTransfer } from "../bench-token.js";
import { deploy, send, waitForReceipt } from "../contracts.js";
import { type BenchRow, formatFigure } from "../report.js";
import { createSenders, type Payment, type Sender } from "../senders.js";
import { startCausewayTarget } from "../targets/causeway-target.js";
import type { ChainTarget } from "../targets/chain-target.js";
import { findHeldRate, type HeldResult, maxTrials, senderGroups } from "../transfer-trial.js";
import { compileSolidity } from "../../helpers/contracts/solidity.js";
import { Turns } from "../turns.js";
import { heldDetail, lengthOf, type RunLength } from "./chain-rows.js";

/** Names of the rows here, for `--only`. */
export const LARGE_STATE_ROWS = ["large-state"] as const;

/** What the rows are run with. */
export interface LargeStateOptions {
  readonly length: RunLength;
  readonly profileFolder: string | undefined;
  readonly say: (line: string) => void;
}

/** Accounts, and slots of one token, of either node. */
const ITEMS = { few: 10_000, many: { quick: 100_000, full: 1_000_000 } };

/** Accounts are numbered from here: their hashes, by which the state is ordered, are spread. */
const FIRST_ITEM = 2n ** 80n;

/** From one payment to the next item's number: a prime that divides no count of items. */
const STRIDE = 7_919;

/** Items that one transaction makes, and gas of one, rounded up. */
const PART = 400;
const GAS_PER_ITEM = 60_000;

/** Transactions that make items: so many are sent together, and a word is said now and then. */
const PAYMENTS_AT_ONCE = 40;
const ROUNDS_PER_WORD = 10;

/** Trials of a search, at most: there are four of them. */
const MOST_TRIALS = 5;

const SOURCE = `
pragma solidity ^0.8.20;
import "@openzeppelin/contracts/token/ERC20/ERC20.sol";
contract LargeState is ERC20("Large", "LARGE") {
  function pay(uint160 first, uint256 count) external payable {
    for (uint256 i = 0; i < count; i++) {
      (bool isPaid, ) = address(first + uint160(i)).call{value: 1}("");
      require(isPaid);
    }
  }
  function mint(uint160 first, uint256 count) external {
    for (uint256 i = 0; i < count; i++) _mint(address(first + uint160(i)), 1 ether);
  }
  function give(address[] calldata holders) external {
    for (uint256 i = 0; i < holders.length; i++) _mint(holders[i], 1 ether);
  }
}`;

const SIGNATURES = [
  "function pay(uint160 first, uint256 count) payable",
  "function mint(uint160 first, uint256 count)",
  "function give(address[] holders)",
];

/** What one node measured. */
interface StateFigures {
  readonly transfers: HeldResult;
  readonly erc20: HeldResult;
  readonly memoryMib: number | undefined;
}

/** Runs the rows. */
export async function runLargeStateRows(options: LargeStateOptions): Promise<BenchRow[]> {
  const { length, profileFolder } = options;
  const many = lengthOf(ITEMS.many, length);
  const turns = new Turns();
  const targets: ChainTarget[] = [];
  try {
    const measured: Promise<StateFigures>[] = [];
    for (const items of [many, ITEMS.few]) {
      const stage = stageOf(items, Math.min(length.trials, MOST_TRIALS));
      const target = await startCausewayTarget({ funded: stage.funded, profileFolder });
      targets.push(target);
      measured.push(measure({ target, turns, stage, options }));
    }
    const [large, small] = await Promise.all(measured);
    if (large === undefined || small === undefined) throw new Error("a node was not measured");
    const row = (title: string, unit: string, of: (figures: StateFigures) => HeldResult) => ({
      title: `${title} held, ${formatFigure(many)} accounts and slots`,
      unit,
      ours: of(large).perSecond,
      peer: of(small).perSecond,
      peerName: `with ${formatFigure(ITEMS.few)}`,
      aim: { ratio: 0.8 },
      details: [
        heldDetail(`with ${formatFigure(many)}`, of(large), large.memoryMib),
        heldDetail(`with ${formatFigure(ITEMS.few)}`, of(small), small.memoryMib),
      ],
    });
    return [
      row("transfers", "tx/s", ({ transfers }) => transfers),
      row("ERC-20 transfers", "tx/s", ({ erc20 }) => erc20),
    ];
  } finally {
    await Promise.all(targets.map((target) => target.stop()));
  }
}

/** Who acts on a node, and how much there is to make. */
interface Stage {
  readonly items: number;
  readonly trials: number;
  readonly owner: Sender;
  readonly payers: Sender[][];
  readonly holders: Sender[][];
  readonly funded: readonly Address[];
}

function stageOf(items: number, trials: number): Stage {
  const [owner] = createSenders(1, "owner of the large state");
  if (owner === undefined) throw new Error("no owner");
  const [payers, holders] = ["payer", "holder"].map((name) =>
    senderGroups(maxTrials(trials) + 1, `${name} of the large state`),
  );
  if (payers === undefined || holders === undefined) throw new Error("no senders");
  const funded = [owner, ...payers.flat(), ...holders.flat()].map(({ address }) => address);
  return { items, trials, owner, payers, holders, funded };
}

interface Measurement {
  readonly target: ChainTarget;
  readonly turns: Turns;
  readonly stage: Stage;
  readonly options: LargeStateOptions;
}

async function measure({ target, turns, stage, options }: Measurement): Promise<StateFigures> {
  const { items, trials, payers, holders } = stage;
  const name = `with ${formatFigure(items)}`;
  const say = (line: string) => options.say(`${name}, ${line}`);
  const contract = await turns.take(() => makeState(target, stage, say));
  const { blocksPerTrial } = options.length;
  const plan = {
    target: { ...target, process: target.process, name },
    turns,
    trials,
    blocksPerTrial,
  };
  let paid = 0;
  const transfers = await findHeldRate({
    ...plan,
    senders: () => payers.shift() ?? [],
    payment: () => ({ to: itemAt(paid++, items) }),
    say: (line) => options.say(`transfers, ${line}`),
  });
  const erc20 = await findHeldRate({
    ...plan,
    senders: () => holders.shift() ?? [],
    payment: () => tokenTransfer(contract, itemAt(paid++, items)),
    say: (line) => options.say(`ERC-20, ${line}`),
  });
  return { transfers, erc20, memoryMib: target.process.memoryMib() };
}

/** Whom a payment goes to: all of them in turn, none near the one before. */
function itemAt(index: number, items: number): Address {
  const number = FIRST_ITEM + BigInt((index * STRIDE) % items);
  return `0x${number.toString(16).padStart(40, "0")}` as Address;
}

/** The contract, with as many accounts and holders as there are to be. */
async function makeState(
  { url }: ChainTarget,
  { items, owner, holders }: Stage,
  say: (line: string) => void,
): Promise<Address> {
  const { LargeState } = compileSolidity({ "LargeState.sol": SOURCE });
  if (LargeState === undefined) throw new Error("the contract does not compile");
  const to = await deploy(url, owner, hexToBytes(LargeState.bytecode));
  const abi = new Interface(SIGNATURES);
  const payments: Payment[] = [];
  const call = (name: string, values: readonly unknown[], valueAtoken = 0n) => {
    const data = hexToBytes(abi.encodeFunctionData(name, values));
    payments.push({ to, data, valueAtoken, gasLimit: BigInt(PART * GAS_PER_ITEM) });
  };
  for (let made = 0; made < items; made += PART) {
    const first = FIRST_ITEM + BigInt(made);
    const count = BigInt(Math.min(PART, items - made));
    call("pay", [first, count], count);
    call("mint", [first, count]);
  }
  const own = holders.flat().map(({ address }) => address);
  for (let given = 0; given < own.length; given += PART) {
    call("give", [own.slice(given, given + PART)]);
  }
  for (let sent = 0; sent < payments.length; sent += PAYMENTS_AT_ONCE) {
    const hashes: string[] = [];
    for (const payment of payments.slice(sent, sent + PAYMENTS_AT_ONCE)) {
      hashes.push(await send(url, owner, payment));
    }
    for (const hash of hashes) {
      const { status } = await waitForReceipt(url, hash);
      if (status !== "0x1") throw new Error("accounts or slots were not made");
    }
    if (sent % (PAYMENTS_AT_ONCE * ROUNDS_PER_WORD) === 0) {
      say(`${sent} of ${payments.length} transactions have made accounts and slots`);
    }
  }
  return to;
}
