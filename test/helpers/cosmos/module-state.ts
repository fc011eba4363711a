/** The modules over a state in memory, block by block, with every coin counted. */
import { type Address, parseAddress } from "../../../chain/address.js";
import type { BalanceReason } from "../../../chain/balance-change.js";
import { signingKeyOf } from "../../../chain/consensus/ed25519.js";
import { validatorAddress, type ValidatorUpdate } from "../../../chain/consensus/validator-set.js";
import { sdkFault, SDK_CODE } from "../../../chain/cosmos/sdk-fault.js";
import { isBlockedAccount } from "../../../node/modules/blocked-accounts.js";
import {
  type BlockEndContext,
  MessageFailure,
  type ModuleContext,
} from "../../../node/modules/module-context.js";
import { beginModules, type BlockFacts, endModules } from "../../../node/modules/modules.js";
import { appVersion } from "../../../node/modules/upgrade/plan.js";
import { createLocalGenesis, type Genesis } from "../../../node/settings/genesis.js";
import { parseModuleParams } from "../../../node/settings/module-params.js";
import { JournaledState } from "../../../node/state/journaled-state.js";

/** An account by a number. */
export function accountAt(index: number): Address {
  return parseAddress(`0x${(0xa0000 + index).toString(16).padStart(40, "0")}`);
}

/** Genesis of validators with operators `accountAt(0)`, 1, ... and stakes in TOKEN. */
export function stakedGenesis(
  stakes: readonly number[],
  params: Readonly<Record<string, string>> = {},
): Genesis {
  return createLocalGenesis({
    network: "testnet",
    faucet: parseAddress(`0x${"fa".repeat(20)}`),
    genesisTimeMs: 1_750_000_000_000,
    validators: stakes.map((power, index) => {
      const { publicKey } = signingKeyOf(Buffer.alloc(32, index + 1));
      return {
        address: validatorAddress(publicKey),
        publicKey: Buffer.from(publicKey).toString("base64"),
        power,
        operator: accountAt(index),
        moniker: `validator ${index}`,
      };
    }),
    modules: parseModuleParams(params),
  });
}

/** The modules of a chain. */
export class ModuleChain {
  readonly state = new JournaledState({
    account: () => undefined,
    code: () => new Uint8Array(0),
    storage: () => new Uint8Array(0),
  });
  readonly events: { readonly type: string; readonly values: Readonly<Record<string, string>> }[] =
    [];
  height = 0;
  timeMs: number;
  mintedAtoken = 0n;
  burnedAtoken = 0n;

  constructor(readonly genesis: Genesis) {
    this.timeMs = genesis.genesisTimeMs;
    beginModules(
      {
        ...this.context(),
        moveCoins: (_reason, _from, to, amountAtoken) => {
          if (to !== undefined) this.mint(to, amountAtoken);
        },
      },
      genesis,
    );
  }

  get pool(): Address {
    return this.genesis.params.validatorsPool;
  }

  balance(address: Address): bigint {
    return this.state.accountNow(address)?.balanceAtoken ?? 0n;
  }

  mint(to: Address, amountAtoken: bigint): void {
    this.state.moveBalance(to, amountAtoken);
    this.mintedAtoken += amountAtoken;
  }

  /** What functions of modules act through, outside of any transaction. */
  context(): ModuleContext {
    const { params } = this.genesis;
    const version = appVersion(this.state);
    return {
      appVersion: version,
      state: this.state,
      height: this.height,
      timeMs: this.timeMs,
      validatorsPool: params.validatorsPool,
      isBlocked: (address) => isBlockedAccount(address, { ...params, appVersion: version }),
      emit: (type, values) => void this.events.push({ type, values }),
      moveCoins: (reason, from, to, amountAtoken) => this.move(reason, from, to, amountAtoken),
    };
  }

  private endContext(): BlockEndContext {
    return { ...this.context(), attempt: (work) => this.run(work) };
  }

  /** One call as a transaction: all of it, or nothing. @returns why it failed */
  run(work: (context: ModuleContext) => void): MessageFailure | undefined {
    const burnedBefore = this.burnedAtoken;
    const eventCount = this.events.length;
    this.state.checkpoint();
    try {
      work(this.context());
      this.state.commit();
      return undefined;
    } catch (error) {
      this.state.revert();
      this.burnedAtoken = burnedBefore;
      this.events.length = eventCount;
      if (error instanceof MessageFailure) return error;
      throw error;
    }
  }

  /** Ends a block and begins the next one. */
  endBlock(
    options: { rewardAtoken?: bigint; facts?: Partial<BlockFacts>; seconds?: number } = {},
  ): ValidatorUpdate[] {
    const { rewardAtoken = 0n, facts = {}, seconds = 2 } = options;
    this.height += 1;
    this.timeMs += seconds * 1_000;
    this.mint(this.pool, rewardAtoken);
    const all = { votes: [], misbehavior: [], ...facts };
    return endModules(this.endContext(), all, rewardAtoken);
  }

  private move(
    _reason: BalanceReason,
    from: Address,
    to: Address | undefined,
    amountAtoken: bigint,
  ): void {
    if (!this.state.moveBalance(from, -amountAtoken)) {
      throw new MessageFailure(sdkFault(SDK_CODE.insufficientFunds, `${amountAtoken}atoken`));
    }
    if (to === undefined) this.burnedAtoken += amountAtoken;
    else this.state.moveBalance(to, amountAtoken);
  }
}
