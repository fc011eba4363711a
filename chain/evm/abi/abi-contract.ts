/**
 * The ABI of one of the chain's own contracts: functions by selector, events by name, as the
 * compiler's artifact has them.
 */
import { z } from "zod";
import { type Address, parseAddress } from "../../address.js";
import type { Hash32 } from "../../hex.js";
import {
  type AbiParameter,
  type AbiType,
  readType,
  selectorOf,
  signatureHash,
  signatureOf,
  typeName,
} from "./abi-types.js";

/** A parameter as the compiler writes it. */
export interface AbiJsonParameter {
  readonly name: string;
  readonly type: string;
  readonly indexed?: boolean | undefined;
  readonly components?: readonly AbiJsonParameter[] | undefined;
}

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
        selector: selectorOf(signatureHash(signatureOf(name, inputs))),
        inputs,
        outputs,
        isView: stateMutability === "view" || stateMutability === "pure",
      })),
    events: entries
      .filter(({ type }) => type === "event")
      .map(({ name, inputs }) => ({
        name,
        topic: signatureHash(signatureOf(name, inputs)),
        inputs,
      })),
  };
}

/**
 * Reads a parameter of one of these contracts. Throws RangeError for a type that none of them uses:
 * no block was made with such values yet.
 */
export function abiParameter({
  name,
  type: written,
  indexed,
  components,
}: AbiJsonParameter): AbiParameter {
  const type = readType(written, components);
  if (type === undefined) throw notUsed(written);
  assertUsed(type);
  return { name, type, isIndexed: indexed === true };
}

/** All but bytes and lists of a fixed length. */
function assertUsed(type: AbiType): void {
  if (type.kind === "tuple") {
    for (const field of type.fields) assertUsed(field.type);
  } else if (type.kind === "array" && type.length === undefined) assertUsed(type.item);
  else if (type.kind === "array" || type.kind === "fixed") throw notUsed(typeName(type));
}

function notUsed(type: string): RangeError {
  return new RangeError(`the type ${type} is not used here`);
}
