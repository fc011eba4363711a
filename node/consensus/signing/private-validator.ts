/**
 * The validator's key and what it signed last, in CometBFT's files and by its rules
 * (privval/file.go): what was signed is on disk before the signature leaves, and nothing that
 * contradicts it, or comes before it, is ever signed.
 */
import { readFile } from "node:fs/promises";
import { z } from "zod";
import type { Address } from "../../../chain/address.js";
import { validatorAddress } from "../../../chain/consensus/validator-set.js";
import {
  type ProposalContent,
  proposalSignBytes,
  VOTE_TYPE,
  type VoteContent,
  voteSignBytes,
} from "../../../chain/consensus/vote.js";
import { errorCode, errorMessage } from "../../../chain/errors.js";
import { removeDrafts, replaceFile, SECRET_MODE } from "../../../runtime/files/durable-file.js";
import { ConsensusError } from "../consensus-error.js";
import { type SigningKey, signingKeyOf } from "../../../chain/consensus/ed25519.js";
import { takeSignedTime } from "./signed-time.js";
import { loadValidatorSeed } from "./validator-key.js";

/** Steps as the state file counts them. */
export const SIGN_STEP = { propose: 1, prevote: 2, precommit: 3 } as const;

/** Content of a state file that says of a key that it has signed nothing, as CometBFT writes it. */
export const UNSIGNED_STATE = '{"height": "0", "round": 0, "step": 0}';

/** Where the sign bytes of each kind have their time: the field's number. */
const TIME_FIELD = { vote: 5, proposal: 6 } as const;

/** A signature and the time that it covers, which may be an earlier one. */
export interface Signed {
  readonly timeNs: bigint;
  /** 64 bytes. */
  readonly signature: Uint8Array;
}

/** A place in the order in which a validator signs; compared from left to right. */
export interface SignPlace {
  readonly height: number;
  readonly round: number;
  /** One of `SIGN_STEP`; 0 for nothing at all. */
  readonly step: number;
}

/** What was signed last. */
interface LastSigned extends SignPlace {
  readonly signature: Buffer | undefined;
  readonly signBytes: Buffer | undefined;
}

/** Where the files lie and for which chain is signed. */
export interface PrivateValidatorOptions {
  readonly keyFile: string;
  readonly stateFile: string;
  readonly chainId: string;
}

const NOTHING_WRITTEN: LastSigned = {
  height: 0,
  round: 0,
  step: 0,
  signature: undefined,
  signBytes: undefined,
};

const stateSchema = z.object({
  height: z.string().regex(/^[0-9]{1,15}$/),
  round: z.number().int().min(0),
  step: z.number().int().min(0).max(3),
  signature: z.base64().optional(),
  signbytes: z
    .string()
    .regex(/^([0-9A-Fa-f]{2})*$/)
    .optional(),
});

/** The signer; one call at a time. */
export class PrivateValidator {
  readonly address: Address;

  private constructor(
    private readonly options: PrivateValidatorOptions,
    private readonly key: SigningKey,
    private last: LastSigned,
  ) {
    this.address = validatorAddress(key.publicKey);
  }

  /**
   * Loads key and state. Without a state file, as on a node that never signs, the signer begins
   * with nothing: see `isStateMissing`. Call it with the store locked: drafts of another process are taken
   * for those of one that was killed.
   * @throws KEY_FILE_INVALID, VALIDATOR_STATE_INVALID
   */
  static async open(options: PrivateValidatorOptions): Promise<PrivateValidator> {
    const key = signingKeyOf(loadValidatorSeed(options.keyFile));
    await removeDrafts(options.stateFile);
    return new PrivateValidator(options, key, await readState(options.stateFile));
  }

  /** Whether there was no state file, and nothing has been signed since. */
  get isStateMissing(): boolean {
    return this.last === NOTHING_WRITTEN;
  }

  /** Place of what was signed last. */
  get lastPlace(): SignPlace {
    return this.last;
  }

  /**
   * Whether the precommit signed last was for a block. True as well where only the place is known:
   * then nobody can say that it was not.
   */
  get isLastForBlock(): boolean {
    const { height, round, step, signBytes } = this.last;
    if (step !== SIGN_STEP.precommit) return false;
    if (signBytes === undefined) return true;
    const content = { type: VOTE_TYPE.precommit, height, round, blockId: undefined, timeNs: 0n };
    const forNone = takeSignedTime(voteSignBytes(this.options.chainId, content), TIME_FIELD.vote);
    return !takeSignedTime(signBytes, TIME_FIELD.vote).rest.equals(forNone.rest);
  }

  /** Where the state is kept. */
  get stateFile(): string {
    return this.options.stateFile;
  }

  /**
   * Signs a vote, or gives the signature of the same vote again.
   * @throws SIGNATURE_REFUSED, SIGNER_WRITE_FAILED
   */
  signVote(vote: VoteContent): Promise<Signed> {
    const step = vote.type === VOTE_TYPE.prevote ? SIGN_STEP.prevote : SIGN_STEP.precommit;
    const signBytes = voteSignBytes(this.options.chainId, vote);
    return this.sign({ ...vote, step, signBytes, timeField: TIME_FIELD.vote });
  }

  /**
   * Signs a proposal, or gives the signature of the same proposal again.
   * @throws SIGNATURE_REFUSED, SIGNER_WRITE_FAILED
   */
  signProposal(proposal: ProposalContent): Promise<Signed> {
    const signBytes = proposalSignBytes(this.options.chainId, proposal);
    const timeField = TIME_FIELD.proposal;
    return this.sign({ ...proposal, step: SIGN_STEP.propose, signBytes, timeField });
  }

  private async sign(wanted: {
    readonly height: number;
    readonly round: number;
    readonly step: number;
    readonly timeNs: bigint;
    readonly signBytes: Buffer;
    readonly timeField: number;
  }): Promise<Signed> {
    const { height, round, step, timeNs, signBytes } = wanted;
    if (this.isSameStep(wanted)) return this.repeat(signBytes, wanted.timeField, timeNs);
    const signature = Buffer.from(this.key.sign(signBytes));
    const next = { height, round, step, signature, signBytes };
    await writeState(this.options.stateFile, next);
    this.last = next;
    return { timeNs, signature };
  }

  /** True when this very step was signed; throws when a later one was. */
  private isSameStep(wanted: { height: number; round: number; step: number }): boolean {
    for (const name of ["height", "round", "step"] as const) {
      if (this.last[name] > wanted[name]) {
        throw refused(`${name} regression: asked for ${wanted[name]} after ${this.last[name]}`);
      }
      if (this.last[name] < wanted[name]) return false;
    }
    return true;
  }

  /** The former signature, when it is for the same content or differs in the time only. */
  private repeat(signBytes: Buffer, timeField: number, timeNs: bigint): Signed {
    const { signature, signBytes: before } = this.last;
    if (signature === undefined || before === undefined) throw refused("no sign bytes found");
    if (signBytes.equals(before)) return { timeNs, signature };
    const former = takeSignedTime(before, timeField);
    if (!former.rest.equals(takeSignedTime(signBytes, timeField).rest)) {
      throw refused("conflicting data");
    }
    return { timeNs: former.timeNs, signature };
  }
}

function refused(reason: string): ConsensusError {
  return new ConsensusError("SIGNATURE_REFUSED", `not signed: ${reason}`);
}

async function readState(file: string): Promise<LastSigned> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (cause) {
    if (errorCode(cause) === "ENOENT") return NOTHING_WRITTEN;
    throw stateInvalid(file, cause);
  }
  try {
    const state = stateSchema.parse(JSON.parse(text));
    const { signature, signbytes } = state;
    return {
      height: Number(state.height),
      round: state.round,
      step: state.step,
      signature: signature === undefined ? undefined : Buffer.from(signature, "base64"),
      signBytes: signbytes === undefined ? undefined : Buffer.from(signbytes, "hex"),
    };
  } catch (cause) {
    throw stateInvalid(file, cause);
  }
}

function stateInvalid(file: string, cause: unknown): ConsensusError {
  return new ConsensusError(
    "VALIDATOR_STATE_INVALID",
    `${file} does not tell what this validator signed last (${errorMessage(cause)}): restore it, ` +
      "never reset it while the key may be in use",
    { cause },
  );
}

function stateText({ height, round, step, signature, signBytes }: LastSigned): string {
  const state = {
    height: String(height),
    round,
    step,
    ...(signature === undefined ? {} : { signature: signature.toString("base64") }),
    ...(signBytes === undefined ? {} : { signbytes: signBytes.toString("hex").toUpperCase() }),
  };
  return `${JSON.stringify(state, undefined, 2)}\n`;
}

async function writeState(file: string, state: LastSigned): Promise<void> {
  try {
    await replaceFile(file, stateText(state), SECRET_MODE);
  } catch (cause) {
    throw new ConsensusError(
      "SIGNER_WRITE_FAILED",
      `cannot write ${file} (${errorCode(cause)}): nothing is signed without it`,
      { cause },
    );
  }
}
