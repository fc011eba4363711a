/** A wallet's key, from its keystore and the passphrase that lies beside it. */
import { ChainError } from "../../chain/errors.js";
import { decryptKeystore, type WalletKey } from "../../chain/signing/keystore.js";
import { readPassphraseFile, readSecretFile } from "../../runtime/config/secret-file.js";

/**
 * Decrypts a keystore; takes up to a second. Of several wallets the message says which one it is about.
 * @throws SECRET_FILE_UNREADABLE, KEYSTORE_MALFORMED, KEYSTORE_WRONG_PASSPHRASE, KEYSTORE_WRONG_ADDRESS
 */
export function readWalletKey(files: {
  readonly keystore: string;
  readonly passphrase: string;
}): WalletKey {
  const { keystore, passphrase } = files;
  const json = readSecretFile(keystore);
  const word = readPassphraseFile(passphrase);
  try {
    return decryptKeystore(json, word);
  } catch (cause) {
    if (!(cause instanceof ChainError)) throw cause;
    const source =
      cause.code === "KEYSTORE_WRONG_PASSPHRASE" ? `; it was read from ${passphrase}` : "";
    const message = `${keystore}: ${cause.message}${source}`;
    throw new ChainError(cause.code, message, { details: { keystore, passphrase }, cause });
  }
}
