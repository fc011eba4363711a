/** A key in this process' memory, from a keystore of version 3. */
import { privateKeyToAddress } from "../../chain/signing/account-key.js";
import { buildAndSign } from "../../chain/signing/legacy-transaction.js";
import { readWalletKey } from "../../ledger/wallets/wallet-key.js";
import type { KeyHolder } from "./signer-port.js";

/**
 * @ethereumjs/tx builds and signs, our own code has to agree byte for byte. The same intent gives
 * the same bytes, so that a crash before they are stored is harmless.
 */
export function createKeyHolder(privateKey: Uint8Array): KeyHolder {
  return {
    address: privateKeyToAddress(privateKey),
    holdsKey: true,
    signTransaction: (intent) => Promise.resolve().then(() => buildAndSign(intent, privateKey).raw),
    close: () => Promise.resolve(),
  };
}

/**
 * Decrypts a keystore, once.
 * @throws SECRET_FILE_UNREADABLE, KEYSTORE_MALFORMED, KEYSTORE_WRONG_PASSPHRASE,
 *   KEYSTORE_WRONG_ADDRESS
 */
export function openKeystore(files: {
  readonly keystore: string;
  readonly passphrase: string;
}): KeyHolder {
  return createKeyHolder(readWalletKey(files).privateKey);
}
