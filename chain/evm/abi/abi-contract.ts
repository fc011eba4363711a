/** A contract's ABI: functions by selector, events by name, as the compiler's artifact has them. */
import { z } from "zod";
import { type Address, parseAddress } from "../../address.js";
import type { Hash32 } from "../../hex.js";
import {
  type AbiJsonParameter,
  type AbiParameter,
  abiParameter,
  signatureHash,
} from "./abi-types.js";

/** A function of a contract. */
export interface AbiFunction {
  readonly name: string;
  /** `0x` and 8 digits. */
  readonly selector: string;
  readonly inputs: readonly AbiParameter[];
  readonly outputs: readonly AbiParameter[];
  /** Whether it changes nothing: `view` or `pure`. */
  readonly isView: boolean;
}

/** An event of a contract. */
export interface AbiEvent {
  readonly name: string;
  readonly topic: Hash32;
  readonly inputs: readonly AbiParameter[];
}

/** A contract that has an address of its own. */
export interface AbiContract {
  readonly address: Address;
  readonly functions: readonly AbiFunction[];
  readonly events: readonly AbiEvent[];
}

const parameterSchema: z.ZodType<AbiJsonParameter> = z.lazy(() =>
  z.object({
    name: z.string(),
    type: z.string(),
    indexed: z.boolean().optional(),
    components: z.array(parameterSchema).optional(),
  }),
);

const artifactSchema = z.object({
  address: z.string(),
  abi: z.array(
    z.object({
      type: z.string(),
      name: z.string().optional(),
      stateMutability: z.string().optional(),
      inputs: z.array(parameterSchema).optional(),
      outputs: z.array(parameterSchema).optional(),
    }),
  ),
});

/** Reads an artifact of an interface. Throws where it is none. */
export function parseAbiContract(json: unknown): AbiContract {
  const { address, abi } = artifactSchema.parse(json);
  const entries = abi.map(({ type, name = "", stateMutability, inputs = [], outputs = [] }) => ({
    type,
    name,
    stateMutability,
    inputs: inputs.map(abiParameter),
    outputs: outputs.map(abiParameter),
  }));
  return {
    address: parseAddress(address),
    functions: entries
      .filter(({ type }) => type === "function")
      .map(({ name, stateMutability, inputs, outputs }) => ({
        name,
        selector: signatureHash(name, inputs).slice(0, 10),
        inputs,
        outputs,
        isView: stateMutability === "view" || stateMutability === "pure",
      })),
    events: entries
      .filter(({ type }) => type === "event")
      .map(({ name, inputs }) => ({ name, topic: signatureHash(name, inputs), inputs })),
  };
}
