/** Signatures that wallets give elsewhere, as in an HSM: put to a draft of a proof of reserves. */
import { type Address, toChecksumAddress } from "../../../chain/address.js";
import { readPersonalSignature } from "../../../chain/signing/personal-message.js";
import { AuditError } from "../errors.js";
import { badOption, readAddressOption } from "../options.js";
import {
  RESERVES_FORMAT,
  type ReservesContents,
  reservesText,
  signsItself,
} from "./reserves-file.js";

const FLAG = "--signature";

/** A signature as somebody brings it. */
export interface GivenSignature {
  readonly address: Address;
  /** Nothing of it is checked yet. */
  readonly signature: string;
}

/** `ADDRESS=0x...` of the command line. @throws BAD_OPTION */
export function readSignatureOption(text: string): GivenSignature {
  const [address = "", signature, ...more] = text.split("=");
  if (signature === undefined || more.length > 0) throw badOption(FLAG, text);
  return { address: readAddressOption(FLAG, address), signature };
}

/** @throws BAD_OPTION for a proof whose wallets have all signed */
export function assertDraft({ accounts, signatures }: ReservesContents, file: string): void {
  const signed = new Set(signatures.map(({ address }) => address));
  if (accounts.some((account) => signsItself(account) && !signed.has(account.address))) return;
  throw new AuditError(
    "BAD_OPTION",
    `${file} is no draft: it has the signatures of all its wallets.`,
  );
}

/**
 * The draft with further signatures, in the order of its accounts, as one has them that was signed at once.
 * @throws BAD_OPTION for one of a stranger, of a wallet that has signed, and of another text or key
 */
export function addSignatures(
  draft: ReservesContents,
  given: readonly GivenSignature[],
): ReservesContents {
  const text = reservesText({ format: RESERVES_FORMAT, ...draft });
  const wallets = draft.accounts.filter(signsItself).map(({ address }) => address);
  const signed = new Map(draft.signatures.map(({ address, signature }) => [address, signature]));
  const known = new Set(wallets);
  for (const { address, signature } of given) {
    const name = toChecksumAddress(address);
    if (!known.has(address)) throw refused(`${name} is no wallet of this draft`);
    if (signed.has(address)) throw refused(`${name} has signed already`);
    const read = readPersonalSignature(text, signature, address);
    if (read === undefined) {
      const how =
        "it is of another text, or by another key (EIP-191 over exactly the text, which ends without a " +
        "line end)";
      throw refused(`${name} did not sign this draft: ${how}`);
    }
    signed.set(address, read);
  }
  const signatures = wallets.flatMap((address) => {
    const signature = signed.get(address);
    return signature === undefined ? [] : [{ address, signature }];
  });
  // What is there of a stranger stays, for the check to find.
  const strangers = draft.signatures.filter(({ address }) => !known.has(address));
  return { ...draft, signatures: [...signatures, ...strangers] };
}

function refused(what: string): AuditError {
  return new AuditError("BAD_OPTION", `${FLAG}: ${what}.`);
}
