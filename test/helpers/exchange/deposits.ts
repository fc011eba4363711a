/**
 * The deposits of the exchange test: what is sent, and what each transaction must mean. The
 * meaning is written down beside the call, from what the contracts are told to do.
 */
import { hexlify, Interface, type InterfaceAbi } from "ethers";
import { type ChainRequest, deployData } from "./chain.js";
import type { Random } from "../random.js";
import type { CompiledContract } from "../contracts/solidity.js";

/** A deposit address and whose it is. */
export interface Target {
  /** Lower case. */
  readonly address: string;
  readonly customerId: string;
}

/** Coins that a watched address must be credited with. */
export interface Payment extends Target {
  readonly amountAtoken: bigint;
}

/** One transaction and its meaning. */
export interface DepositCase {
  readonly kind: string;
  readonly request: ChainRequest;
  /** Status of its receipt. */
  readonly succeeds: boolean;
  /** One entry for each row that must appear; none where nothing may be credited. */
  readonly pays: readonly Payment[];
}

/** What the cases are made of. */
export interface DepositParts {
  readonly random: Random;
  readonly contracts: Record<string, CompiledContract>;
  readonly targets: readonly Target[];
  /** Entry of the chain of four routers. */
  readonly router: string;
  /** Contracts of 1 TOKEN each that wait for their end. */
  readonly bequests: readonly string[];
  /** Watched by nobody. */
  readonly strangers: readonly string[];
}

/** What a Bequest holds. */
export const BEQUEST_ATOKEN = 10n ** 18n;

/** Gas that lets the paying frame work and the transaction fail. */
const STARVED_GAS = 120_000n;

/** Draws amounts that never repeat, so that a row belongs to exactly one payment. */
export function createAmounts(random: Random): () => bigint {
  let drawn = 0n;
  return () => {
    drawn += 1n;
    return 10n ** 17n + drawn * 10n ** 14n + BigInt(random.integer(2 ** 32));
  };
}

/** All cases, in order of kinds; shuffle before sending. */
export function planDeposits(parts: DepositParts): DepositCase[] {
  const maker = new CaseMaker(parts, createAmounts(parts.random));
  const many = (count: number, make: () => DepositCase) => Array.from({ length: count }, make);
  return [
    ...many(70, () => maker.plain("plain", { type: 0 })),
    ...many(8, () => maker.plain("plain with access list", { type: 1 })),
    ...many(8, () => maker.plain("plain of type 2", { type: 2 })),
    ...many(24, () => maker.plain("with calldata", { data: maker.calldata(), gasLimit: 60_000n })),
    ...[1, 2, 3, 4].flatMap((depth) => many(6, () => maker.forward(depth, maker.payments(4)))),
    ...many(8, () => maker.severalToOne()),
    ...many(10, () => maker.constructorPayout()),
    ...many(8, () => maker.create2Payout()),
    ...many(8, () => maker.mayfly()),
    ...many(8, () => maker.create2Mayfly()),
    ...parts.bequests.map((bequest) => maker.bequest(bequest)),
    ...many(14, () => maker.revertedBesideKept()),
    ...many(4, () => maker.revertedAbove()),
    ...many(4, () => maker.nothing("payAndStarve", "inner frame runs out of gas")),
    ...many(4, () => maker.nothing("delegateTo", "DELEGATECALL value")),
    ...many(4, () => maker.nothing("overdraw", "call beyond the balance")),
    ...many(4, () => maker.callCode()),
    ...many(4, () => maker.create2Reverted()),
    ...many(5, () => maker.failed("fail", 700_000n, "failed transaction")),
    ...many(5, () => maker.failed("payAndBurn", STARVED_GAS, "transaction out of gas")),
    ...many(4, () => maker.zero()),
    ...parts.strangers.map((address) => maker.unknown(address)),
  ];
}

/** One transaction that pays several addresses `depth` frames below itself. */
export function forwardRequest(
  route: {
    readonly contracts: Record<string, CompiledContract>;
    readonly router: string;
    readonly depth: number;
  },
  pays: readonly Pick<Payment, "address" | "amountAtoken">[],
): ChainRequest {
  const amounts = amountsOf(pays);
  const args = [addressesOf(pays), amounts, route.depth];
  const data = new Interface(abiOf(route.contracts["Router"])).encodeFunctionData("forward", args);
  return { to: route.router, valueAtoken: sum(amounts), data };
}

/** Puts a list in random order. */
export function shuffle<T>(random: Random, items: readonly T[]): T[] {
  return items
    .map((item) => ({ item, place: random.integer(2 ** 32) }))
    .toSorted((left, right) => left.place - right.place)
    .map(({ item }) => item);
}

function abiOf(contract: CompiledContract | undefined): InterfaceAbi {
  if (contract === undefined) throw new Error("the contract did not compile");
  return JSON.stringify(contract.abi);
}

class CaseMaker {
  readonly #router: Interface;
  readonly #bequest: Interface;

  constructor(
    readonly parts: DepositParts,
    readonly amount: () => bigint,
  ) {
    this.#router = new Interface(abiOf(parts.contracts["Router"]));
    this.#bequest = new Interface(abiOf(parts.contracts["Bequest"]));
  }

  calldata(): string {
    return hexlify(this.parts.random.bytes(1 + this.parts.random.integer(200)));
  }

  payment(): Payment {
    return { ...this.parts.random.pick(this.parts.targets), amountAtoken: this.amount() };
  }

  payments(count: number): Payment[] {
    return Array.from({ length: count }, () => this.payment());
  }

  plain(kind: string, fields: Omit<ChainRequest, "to">): DepositCase {
    const paid = this.payment();
    const request = { ...fields, to: paid.address, valueAtoken: paid.amountAtoken };
    return { kind, request, succeeds: true, pays: [paid] };
  }

  forward(depth: number, pays: readonly Payment[]): DepositCase {
    const { contracts, router } = this.parts;
    const request = forwardRequest({ contracts, router, depth }, pays);
    return { kind: `forwarded at depth ${depth}`, request, succeeds: true, pays };
  }

  /** Three payments to one address in one transaction, two of them of the same amount. */
  severalToOne(): DepositCase {
    const first = this.payment();
    const pays = [first, { ...first, amountAtoken: this.amount() }, first];
    return { ...this.forward(1, pays), kind: "several to one address" };
  }

  constructorPayout(): DepositCase {
    const pays = this.payments(2);
    const payout = this.parts.contracts["Payout"];
    return this.#created("constructor payout", payout, [addressesOf(pays), amountsOf(pays)], pays);
  }

  mayfly(): DepositCase {
    const pays = this.payments(1);
    const kind = "self-destruct in the constructor";
    return this.#created(kind, this.parts.contracts["Mayfly"], addressesOf(pays), pays);
  }

  create2Payout(): DepositCase {
    const pays = this.payments(1);
    const args = [this.#salt(), addressesOf(pays), amountsOf(pays)];
    return this.#routed("CREATE2 payout", { pays, name: "createPayout", args });
  }

  create2Mayfly(): DepositCase {
    const pays = this.payments(1);
    const args = [this.#salt(), ...addressesOf(pays)];
    return this.#routed("CREATE2 self-destruct", { pays, name: "createMayfly", args });
  }

  /** The heir gets what the contract held and what came with the call, in one operation. */
  bequest(address: string): DepositCase {
    const target = this.parts.random.pick(this.parts.targets);
    const valueAtoken = this.amount();
    const data = this.#bequest.encodeFunctionData("end", [target.address]);
    return {
      kind: "self-destruct payout",
      request: { to: address, valueAtoken, data },
      succeeds: true,
      pays: [{ ...target, amountAtoken: valueAtoken + BEQUEST_ATOKEN }],
    };
  }

  revertedBesideKept(): DepositCase {
    const [lost, kept] = [this.payment(), this.payment()];
    const args = [lost.address, lost.amountAtoken, kept.address, kept.amountAtoken];
    const valueAtoken = lost.amountAtoken + kept.amountAtoken;
    const kind = "kept beside a reverted payment";
    return this.#routed(kind, { pays: [kept], name: "payAndCatch", args, valueAtoken });
  }

  revertedAbove(): DepositCase {
    const lost = this.payments(3);
    const args = [addressesOf(lost), amountsOf(lost)];
    const valueAtoken = sum(amountsOf(lost));
    const call = { pays: [], name: "relayAndCatch", args, valueAtoken };
    return this.#routed("inside a reverted call", call);
  }

  nothing(name: string, kind: string): DepositCase {
    const { address, amountAtoken: valueAtoken } = this.payment();
    return this.#routed(kind, { pays: [], name, args: [address], valueAtoken });
  }

  callCode(): DepositCase {
    const { address, amountAtoken: valueAtoken } = this.payment();
    const args = [address, valueAtoken];
    return this.#routed("CALLCODE value", { pays: [], name: "callCodeTo", args, valueAtoken });
  }

  create2Reverted(): DepositCase {
    const { address, amountAtoken: valueAtoken } = this.payment();
    const args = [this.#salt(), address];
    return this.#routed("CREATE2 reverted", { pays: [], name: "createFickle", args, valueAtoken });
  }

  failed(name: string, gasLimit: bigint, kind: string): DepositCase {
    const made = this.nothing(name, kind);
    return { ...made, succeeds: false, request: { ...made.request, gasLimit } };
  }

  zero(): DepositCase {
    const { address } = this.payment();
    return { kind: "zero value", request: { to: address }, succeeds: true, pays: [] };
  }

  unknown(address: string): DepositCase {
    const request = { to: address, valueAtoken: this.amount() };
    return { kind: "unknown address", request, succeeds: true, pays: [] };
  }

  #salt(): string {
    return hexlify(this.parts.random.bytes(32));
  }

  #created(
    kind: string,
    contract: CompiledContract | undefined,
    args: readonly unknown[],
    pays: readonly Payment[],
  ): DepositCase {
    const request = { data: deployData(contract, args), valueAtoken: sum(amountsOf(pays)) };
    return { kind, request, succeeds: true, pays };
  }

  #routed(
    kind: string,
    call: {
      readonly pays: readonly Payment[];
      readonly name: string;
      readonly args: readonly unknown[];
      readonly valueAtoken?: bigint;
    },
  ): DepositCase {
    const { pays, name, args, valueAtoken = sum(amountsOf(pays)) } = call;
    const data = this.#router.encodeFunctionData(name, [...args]);
    const request = { to: this.parts.router, valueAtoken, data };
    return { kind, request, succeeds: true, pays };
  }
}

function addressesOf(pays: readonly Pick<Payment, "address">[]): string[] {
  return pays.map(({ address }) => address);
}

function amountsOf(pays: readonly Pick<Payment, "amountAtoken">[]): bigint[] {
  return pays.map(({ amountAtoken }) => amountAtoken);
}

function sum(amounts: readonly bigint[]): bigint {
  return amounts.reduce((total, amount) => total + amount, 0n);
}
