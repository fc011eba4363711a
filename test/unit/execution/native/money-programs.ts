/**
 * Random bytecode that does with coins what it can: calls of modules in the contract's own name, value to
 * anybody, contracts that are made with coins and destroy themselves, also in favour of accounts of the
 * chain. Any frame may fail, in any way.
 */
import { type Address, parseAddress, toBech32 } from "../../../../chain/address.js";
import { MODULE_ACCOUNTS, STATELESS_ACCOUNTS } from "../../../../node/modules/system-storage.js";
import type { ChainParams } from "../../../../node/settings/genesis.js";
import { accountOf, operatorText, published } from "../../../helpers/chains/native-chain.js";
import type { Random } from "../../../helpers/random.js";
import { callCode, push } from "../call-fixture.js";

const TOKEN = 10n ** 18n;
/** Takes the place of the contract's own address, which a program knows only as it runs. */
const SELF = parseAddress(`0x${"00".repeat(20)}`);
const NOBODY = parseAddress(`0x${"d7".repeat(20)}`);
const MAX_DEPTH = 2;
/** REVERT, INVALID, STOP. */
const ENDS = ["5f5ffd", "fe", "00"];

const staking = published("IStaking");
const distribution = published("IDistribution");

/** Contracts that programs know. */
export const CONTRACTS: readonly Address[] = Array.from({ length: 6 }, (_, index) =>
  parseAddress(`0x${`e${index}`.repeat(20)}`),
);

/** Makes programs; `code` of the same generator differs each time. */
export class MoneyPrograms {
  private readonly receivers: readonly Address[];

  constructor(
    private readonly random: Random,
    params: Pick<ChainParams, "feeCollector" | "treasury" | "validatorsPool" | "burnAddress">,
  ) {
    const { feeCollector, treasury, validatorsPool, burnAddress } = params;
    const ofTheChain = [feeCollector, treasury, validatorsPool, burnAddress];
    const modules = [...Object.values(MODULE_ACCOUNTS), ...STATELESS_ACCOUNTS];
    const people = [accountOf(0), accountOf(2), NOBODY];
    this.receivers = [...CONTRACTS, ...CONTRACTS, ...ofTheChain, ...modules, ...people];
  }

  /** Atoken that somebody may send or stake. */
  amount(): bigint {
    return this.random.pick([0n, 1n, TOKEN / 1_000n, TOKEN / 7n, TOKEN / 2n, TOKEN, 3n * TOKEN]);
  }

  /** A program as hex without prefix. */
  code(depth = 0): string {
    const { random } = this;
    const parts = Array.from({ length: 2 + random.integer(6) }, () => this.part(depth));
    if (random.integer(4) === 0) parts.push(random.pick([this.destroy(), "5f5ffd"]));
    return parts.join("");
  }

  /** SELFDESTRUCT in favour of itself or of another one. */
  destroy(): string {
    return this.random.integer(2) === 0 ? "30ff" : `73${this.receiver().slice(2)}ff`;
  }

  private part(depth: number): string {
    const { random } = this;
    const kind = random.integer(12);
    if (kind < 5) return this.moduleCall();
    if (kind < 8) return this.send();
    if (kind === 8 && depth < MAX_DEPTH) return this.create(depth);
    if (kind === 9) return this.sendAllOf();
    if (kind === 10 && random.integer(3) === 0) return this.destroy();
    if (kind === 11 && random.integer(4) === 0) return random.pick(ENDS);
    const gas = push(300_000 + random.integer(400_000));
    return `${callCode("f4", random.pick(CONTRACTS), { gas })}50`;
  }

  /** A call of a module about the contract itself; by CALLCODE and DELEGATECALL it must be refused. */
  private moduleCall(): string {
    const { random } = this;
    const { address, data } = this.moduleInput();
    const words = data.slice(2).match(/.{1,64}/g) ?? [];
    const input = words.map((word, at) => `7f${word.padEnd(64, "0")}${push(32 * at)}52`).join("");
    const opcode = random.pick(["f1", "f1", "f1", "f1", "f2", "f4"] as const);
    const value = random.integer(12) === 0 ? 1n : 0n;
    const gas = random.integer(8) === 0 ? push(random.integer(200_000)) : "5a";
    // ADDRESS over the first argument, behind the selector.
    const options = { value, gas, inBytes: (data.length - 2) / 2, outBytes: 32 };
    return `${input}30600452${callCode(opcode, address, options)}50`;
  }

  private moduleInput(): { readonly address: Address; readonly data: string } {
    const { random } = this;
    const validator = operatorText(random.integer(2));
    const amount = random.pick([1n, TOKEN / 1_000n, TOKEN / 7n, TOKEN / 2n, 2n * TOKEN]);
    const coins = [["atoken", amount]];
    const to = toBech32(random.pick([...CONTRACTS, accountOf(3), NOBODY]));
    const [{ abi, address }, name, args] = random.pick([
      [staking, "delegate", [SELF, validator, amount]],
      [staking, "delegate", [SELF, validator, amount]],
      [staking, "undelegate", [SELF, validator, amount]],
      [staking, "redelegate", [SELF, operatorText(0), operatorText(1), amount]],
      [staking, "cancelUnbondingDelegation", [SELF, validator, amount, 1 + random.integer(6)]],
      [distribution, "claimRewards", [SELF, 5]],
      [distribution, "withdrawDelegatorRewards", [SELF, validator]],
      [distribution, "setWithdrawAddress", [SELF, to]],
      [distribution, "fundCommunityPool", [SELF, coins]],
      [distribution, "depositValidatorRewardsPool", [SELF, validator, coins]],
    ] as const);
    return { address, data: abi.encodeFunctionData(name, args) };
  }

  private send(): string {
    const { random } = this;
    const gas = random.integer(5) === 0 ? push(random.integer(100_000)) : "5a";
    const opcode = random.pick(["f1", "f1", "f1", "f2"] as const);
    return `${callCode(opcode, this.receiver(), { value: this.amount(), gas })}50`;
  }

  /** As many coins as another contract has. */
  private sendAllOf(): string {
    const balance = `73${this.random.pick(CONTRACTS).slice(2)}31`;
    return `${balance}5f5f5f5f8473${this.receiver().slice(2)}5af15050`;
  }

  /** A contract whose creation does as much, and is called afterwards. */
  private create(depth: number): string {
    const { random } = this;
    const init = this.code(depth + 1) + (random.integer(2) === 0 ? this.destroy() : "");
    const words = init.match(/.{1,64}/g) ?? [];
    const memory = words.map((word, at) => `7f${word.padEnd(64, "0")}${push(32 * at)}52`).join("");
    const range = `${push(init.length / 2)}5f${push(random.pick([0n, TOKEN / 10n, TOKEN]))}`;
    const isSalted = random.integer(2) === 0;
    const made = isSalted ? `${push(random.integer(3))}${range}f5` : `${range}f0`;
    return `${memory}${made}${random.integer(3) === 0 ? "5f5f5f5f5f945af150" : "50"}`;
  }

  private receiver(): Address {
    return this.random.pick(this.receivers);
  }
}
