/** Every kind of native balance change, as seeded acts. */
import { hexlify, Wallet } from "ethers";
import { SYSTEM_ADDRESSES } from "../../chain/networks.js";
import type { Sender } from "../helpers/exchange/chain.js";
import type { CompiledContract } from "../helpers/contracts/solidity.js";
import {
  type Act,
  callRequest,
  compileContracts,
  deployRequest,
  type Stage,
  type TrafficReceipt,
} from "./traffic.js";

/** The deployed contracts that native traffic runs through. */
export interface NativeContracts {
  readonly compiled: Record<string, CompiledContract>;
  readonly moves: string;
  /** Lives through the whole run: destroyed again and again, as EIP-6780 has it. */
  readonly child: string;
}

/** Links of the chain of contracts below the first one. */
const HOPS = 4;

/** Accounts of the chain itself and special ones, which get coins like any other. */
const ODD_RECIPIENTS = [
  "0x0000000000000000000000000000000000000000",
  "0x000000000000000000000000000000000000dead",
  "0x0000000000000000000000000000000000000001",
  SYSTEM_ADDRESSES.feeCollector,
  SYSTEM_ADDRESSES.treasury,
];

/** Deploys the contracts. */
export async function deployNative(stage: Stage): Promise<NativeContracts> {
  const compiled = compileContracts("Moves.sol");
  const [sender] = stage.senders;
  if (sender === undefined) throw new Error("no sender");
  let hop = "0x0000000000000000000000000000000000000000";
  for (let n = 0; n <= HOPS; n += 1) hop = await sender.deploy(compiled["Hop"], [hop]);
  const moves = await sender.deploy(compiled["Moves"], [hop], 1_000n);
  const child = await sender.deploy(compiled["Child"], [], 1_000n);
  // The next transaction of the sender is mined after them.
  await stage.chain.mined(await sender.send([{ to: sender.wallet.address }]));
  return { compiled, moves, child };
}

/** One round: each kind once, with random senders, recipients and amounts, in random order. */
export function nativeRound(stage: Stage, contracts: NativeContracts): Act[] {
  const acts = [...plainActs(stage, contracts), ...contractActs(stage, contracts)];
  for (let last = acts.length - 1; last > 0; last -= 1) {
    const other = stage.random.integer(last + 1);
    const [left, right] = [acts[last], acts[other]];
    if (left !== undefined && right !== undefined) [acts[last], acts[other]] = [right, left];
  }
  return acts;
}

/** Half of the recipients have a past, half are new. */
function recipient({ random, senders }: Stage): string {
  const isKnown = random.integer(2) === 0;
  if (isKnown) return random.pick(senders).wallet.address;
  return new Wallet(hexlify(random.bytes(32))).address;
}

function amount({ random }: Stage): bigint {
  return 8n * BigInt(1 + random.integer(2 ** 31)) * 10n ** BigInt(random.integer(8));
}

function plainActs(stage: Stage, { compiled }: NativeContracts): Act[] {
  const { random, senders, chain } = stage;
  const transfer = (kind: string, request: Partial<Act["request"]>, from?: Sender): Act => ({
    kind,
    from: from ?? random.pick(senders),
    request: { to: recipient(stage), valueAtoken: amount(stage), ...request },
  });
  const self = random.pick(senders);
  const endowment = amount(stage);
  const holds = (atoken: bigint) => async (receipt: TrafficReceipt) => {
    const whole = await chain.provider.send("eth_getTransactionReceipt", [receipt.hash]);
    const block = `0x${receipt.blockNumber.toString(16)}`;
    const balance = await chain.provider.send("eth_getBalance", [whole.contractAddress, block]);
    return BigInt(balance) === atoken;
  };
  const create = (kind: string, contract: string, args: readonly unknown[]) => ({
    kind,
    from: random.pick(senders),
    request: deployRequest(compiled[contract], args, endowment),
  });
  return [
    transfer("transfer", {}),
    transfer("transfer, type 1", { type: 1 }),
    transfer("transfer, type 2", { type: 2 }),
    transfer("transfer with calldata", { data: hexlify(random.bytes(40)) }),
    transfer("transfer with memo", { data: hexlify(Buffer.from(`memo ${random.integer(1e6)}`)) }),
    transfer("transfer of zero", { valueAtoken: 0n }),
    transfer("self-transfer", { to: self.wallet.address }, self),
    transfer("self-transfer of zero", { to: self.wallet.address, valueAtoken: 0n }, self),
    ...ODD_RECIPIENTS.map((to) => transfer(`transfer to ${to}`, { to, gasLimit: 60_000n })),
    { ...create("creation with endowment", "Child", []), proof: holds(endowment) },
    { ...create("creation that ends itself", "Mayfly", [recipient(stage)]), proof: holds(0n) },
    { ...create("creation that fails", "Failing", [recipient(stage)]), fails: true },
  ];
}

function contractActs(stage: Stage, { compiled, moves, child }: NativeContracts): Act[] {
  const { random, senders } = stage;
  const act = (says: string, name: string, args: readonly unknown[], fails = false): Act => ({
    kind: says,
    from: random.pick(senders),
    request: callRequest(compiled["Moves"], moves, { name, args, valueAtoken: amount(stage) }),
    ...(fails ? { fails } : { says }),
  });
  const to = () => recipient(stage);
  const depths = [1, 2, 3].map((depth) =>
    act(`payment at depth ${depth + 1}`, "relay", [to(), depth, `payment at depth ${depth + 1}`]),
  );
  const starved = act("out of gas", "burnGas", [], true);
  return [
    ...depths,
    act("inner revert", "catchRevert", [to()]),
    act("inner out of gas", "catchStarved", [to()]),
    act("overdraw", "overdraw", [to()]),
    act("delegatecall, staticcall, callcode", "callsWithoutValue", [to()]),
    act("payment inside delegatecall", "payByDelegate", [to()]),
    act("inner self-transfer", "payMyself", []),
    act("precompiles with value", "payPrecompiles", []),
    act("failing precompile with value", "failPrecompile", []),
    act("create with endowment", "create", []),
    act("create2 with endowment", "create2", [random.bytes(32)]),
    act("failing constructors", "failingConstructor", [to()]),
    act("selfdestruct to another", "endOld", [child, to()]),
    act("selfdestruct to itself", "endOldToItself", [child]),
    act("new selfdestruct to another", "endNew", [to()]),
    act("new selfdestruct to itself", "endNewToItself", []),
    act("payment after selfdestruct", "payTheDead", [to()]),
    act("undone selfdestruct", "undoEnd", [to()]),
    act("reverted transaction", "fail", [to()], true),
    {
      ...starved,
      request: { ...starved.request, gasLimit: 200_000n },
      proof: ({ gasUsed }) => gasUsed === 200_000n,
    },
  ];
}
