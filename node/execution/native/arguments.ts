/** Arguments of a call by their names and kinds; the ABI has made sure that they are there. */
import { type Address, parseBech32, VALIDATOR_PREFIX } from "../../../chain/address.js";
import type { AbiValue } from "../../../chain/evm/abi/abi-values.js";
import { SDK_CODE } from "../../../chain/cosmos/sdk-fault.js";
import { BASE_DENOM } from "../../../chain/units.js";
import { amountOfCoins, messageFailure } from "../../modules/message-fields.js";

/** Values of a call, or of a struct in it. */
export class Arguments {
  constructor(private readonly values: { readonly [name: string]: AbiValue }) {}

  address(name: string): Address {
    return this.text(name) as Address;
  }

  text(name: string): string {
    const value = this.values[name];
    if (typeof value !== "string") throw mismatch(name);
    return value;
  }

  integer(name: string): bigint {
    const value = this.values[name];
    if (typeof value !== "bigint") throw mismatch(name);
    return value;
  }

  flag(name: string): boolean {
    return this.values[name] === true;
  }

  bytes(name: string): Uint8Array {
    const value = this.values[name];
    if (!(value instanceof Uint8Array)) throw mismatch(name);
    return value;
  }

  struct(name: string): Arguments {
    return structOf(this.values[name], name);
  }

  structs(name: string): Arguments[] {
    const value = this.values[name];
    if (!Array.isArray(value)) throw mismatch(name);
    return value.map((item: AbiValue) => structOf(item, name));
  }

  /** An operator's bech32 text. Throws `MessageFailure`. */
  operator(name: string): Address {
    const text = this.text(name);
    try {
      return parseBech32(text, VALIDATOR_PREFIX);
    } catch {
      const shown = `invalid validator address: ${text.slice(0, 100)}`;
      throw messageFailure(SDK_CODE.invalidAddress, shown);
    }
  }

  /** An amount that is greater than zero. Throws `MessageFailure`. */
  amount(name: string): bigint {
    const amount = this.integer(name).toString();
    return amountOfCoins([{ denom: BASE_DENOM, amount }]);
  }

  /** The amount of a list of coins: one of the chain's own. Throws `MessageFailure`. */
  coins(name: string): bigint {
    const coins = this.structs(name).map((coin) => ({
      denom: coin.text("denom"),
      amount: coin.integer("amount").toString(),
    }));
    return amountOfCoins(coins);
  }
}

function structOf(value: AbiValue | undefined, name: string): Arguments {
  const isStruct =
    typeof value === "object" && !Array.isArray(value) && !(value instanceof Uint8Array);
  if (!isStruct) throw mismatch(name);
  return new Arguments(value as { readonly [name: string]: AbiValue });
}

function mismatch(name: string): TypeError {
  return new TypeError(`the ABI has another type for ${name}`);
}
