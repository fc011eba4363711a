/** Interfaces of the chain's own contracts, from the compiled artifacts, and the logs that they emit. */
import fs from "node:fs";
import { present } from "../../../chain/errors.js";
import { type AbiContract, parseAbiContract } from "../../../chain/evm/abi/abi-contract.js";
import type { AbiParameter } from "../../../chain/evm/abi/abi-types.js";
import { type AbiValue, encodeAbi } from "../../../chain/evm/abi/abi-values.js";
import { keccak256 } from "../../../chain/hashes.js";
import { bytesToHash32, type Hash32 } from "../../../chain/hex.js";
import type { Log } from "../../../chain/receipt.js";

function load(name: string): AbiContract {
  const file = new URL(`../../../contracts/artifacts/${name}.json`, import.meta.url);
  return parseAbiContract(JSON.parse(fs.readFileSync(file, "utf8")));
}

/** Validators and delegations. */
export const STAKING = load("IStaking");
/** Rewards, commission, the community pool. */
export const DISTRIBUTION = load("IDistribution");
/** Balances and supply. */
export const BANK = load("IBank");
/** Who signs. */
export const SLASHING = load("ISlashing");
/** Proposals and votes. */
export const GOV = load("IGov");
/** Two ways to write an account. */
export const BECH32 = load("IBech32");

/** An event of a contract as a log. */
export function logOf(
  contract: AbiContract,
  name: string,
  values: { readonly [name: string]: AbiValue },
): Log {
  const { topic, inputs } = present(
    contract.events.find((one) => one.name === name),
    `an event ${name}`,
  );
  const valueOf = (input: AbiParameter) => present(values[input.name], `a value ${input.name}`);
  const plain = inputs.filter(({ isIndexed }) => !isIndexed);
  return {
    address: contract.address,
    topics: [
      topic,
      ...inputs.filter(({ isIndexed }) => isIndexed).map((input) => topicOf(input, valueOf(input))),
    ],
    data: encodeAbi(plain, plain.map(valueOf)),
  };
}

/** A text is its hash. */
function topicOf(input: AbiParameter, value: AbiValue): Hash32 {
  const bytes =
    input.type.kind === "string" && typeof value === "string"
      ? keccak256(Buffer.from(value, "utf8"))
      : encodeAbi([input], [value]);
  return bytesToHash32(bytes);
}
