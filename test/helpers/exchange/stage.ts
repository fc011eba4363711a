/** The stage of the exchange test: accounts, contracts, and addresses given to customers. */
import { type HDNodeVoidWallet, HDNodeWallet, Wallet } from "ethers";
import { ExchangeChain, Sender } from "./chain.js";
import { BEQUEST_ATOKEN, type Target } from "./deposits.js";
import { type Destinations, freshAddress } from "./withdrawals.js";
import { callApi, type RunningKit } from "../kit.js";
import type { Random } from "../random.js";
import { type CompiledContract, compileFixture } from "../contracts/solidity.js";

/** 1 TOKEN in atoken. */
export const TOKEN = 10n ** 18n;

/** An index of the deposit branch that no run reaches. */
const NEVER_GIVEN_INDEX = 1_000;

/** Contracts of Exchange.sol on the chain. */
export interface Contracts {
  /** The entry of a chain of four routers. */
  readonly router: string;
  readonly bequests: readonly string[];
  /** Relay -> deposit address to which it passes everything on. */
  readonly relayTargets: ReadonlyMap<string, Target>;
  readonly destinations: Destinations;
}

/** Who plays, and where; nothing here asks the product what happened. */
export class ExchangeStage {
  readonly chain: ExchangeChain;
  readonly faucet: Sender;
  /** Lower case. */
  readonly hotWallet: string;
  /** Derivation of deposit addresses by ethers, from the xpub alone. */
  readonly xpub: HDNodeWallet | HDNodeVoidWallet;
  readonly compiled: Record<string, CompiledContract> = compileFixture("Exchange.sol");
  /** Every registered address; `index` and `address` as the API answered. */
  readonly targets: (Target & { readonly checksum: string; readonly index: number })[] = [];

  constructor(
    readonly kit: RunningKit,
    readonly random: Random,
  ) {
    this.chain = new ExchangeChain(kit);
    this.faucet = new Sender(new Wallet(kit.key("faucet.key")), this.chain);
    const keystore: { address: string } = JSON.parse(kit.key("hot-wallet.json"));
    this.hotWallet = `0x${keystore.address.replace(/^0x/, "").toLowerCase()}`;
    this.xpub = HDNodeWallet.fromExtendedKey(kit.key("deposit.xpub"));
  }

  /** Gives a customer one more address. */
  async register(customerId: string): Promise<Target> {
    const body = { customerId };
    const answer = await callApi(this.kit, "depositApi", { path: "/v1/addresses", body });
    if (answer.status !== 201) throw new Error(`an address: ${JSON.stringify(answer)}`);
    const checksum = String(answer.body["address"]);
    const index = Number(answer.body["index"]);
    const target = { address: checksum.toLowerCase(), customerId, checksum, index };
    this.targets.push(target);
    return target;
  }

  /** Deposit address of an index, derived by ethers; lower case. */
  addressAt(index: number): string {
    return this.xpub.deriveChild(index).address.toLowerCase();
  }

  /** Addresses that nobody was given, and some that are not even ours. */
  strangers(): string[] {
    const others = Array.from({ length: 5 }, () => freshAddress(this.random).toLowerCase());
    return [this.addressAt(NEVER_GIVEN_INDEX), ...others];
  }

  /** New accounts, each with this many atoken from the faucet. */
  async fund(count: number, eachAtoken: bigint): Promise<Wallet[]> {
    const wallets = Array.from(
      { length: count },
      () => new Wallet(Wallet.createRandom().privateKey),
    );
    const gifts = wallets.map(({ address }) => ({ to: address, valueAtoken: eachAtoken }));
    await this.chain.mined(await this.faucet.send(gifts));
    return wallets;
  }

  /** Deploys routers, bequests and destinations; relays pay the first two addresses. */
  async deploy(deployer: Sender): Promise<Contracts> {
    const deploy = (name: string, args: readonly unknown[] = [], valueAtoken = 0n) =>
      deployer.deploy(this.compiled[name], args, valueAtoken);
    const several = async (count: number, make: () => Promise<string>) => {
      const made: string[] = [];
      for (let n = 0; n < count; n += 1) made.push(await make());
      return made;
    };
    let router = `0x${"00".repeat(20)}`;
    for (let n = 0; n < 4; n += 1) router = await deploy("Router", [router]);
    const bequests = await several(8, () => deploy("Bequest", [], BEQUEST_ATOKEN));
    const relayTargets = new Map<string, Target>();
    for (const target of this.targets.slice(0, 2)) {
      relayTargets.set(await deploy("Relay", [target.address]), target);
    }
    const destinations = {
      bookkeepers: await several(5, () => deploy("Bookkeeper")),
      refusers: [...(await several(2, () => deploy("Refuser"))), await deploy("Deaf")],
      burner: await deploy("Burner"),
      once: await several(2, () => deploy("Once")),
      relays: [...relayTargets.keys()],
      boomerang: await deploy("Boomerang"),
    };
    // One sender's transactions are mined in order: when the last one is, all are.
    await this.chain.mined(await deployer.send([{ to: deployer.wallet.address }]));
    return { router, bequests, relayTargets, destinations };
  }
}
