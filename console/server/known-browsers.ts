/**
 * Browsers in which somebody has logged in before ("device cookies" of OWASP): their tries are counted
 * apart from those of strangers at the same name. What such a browser keeps opens nothing, and is worth
 * nothing once the user has another password.
 */
import { createHmac, randomBytes } from "node:crypto";
import type { Logger } from "../../runtime/process/logger.js";
import { browserKey } from "../users/browser-key.js";
import { lookForUser } from "../users/user-files.js";
import { isSameToken } from "./session-store.js";

const ID_BYTES = 16;

/** 16 bytes in base64url. */
const ID_CHARACTERS = 22;

/** A browser that is not used for so long is a stranger again: browsers keep no cookie longer. */
export const KNOWN_SECONDS = 400 * 86_400;

/** All browsers that one home knows, by what they bring with them: nothing of them is kept here. */
export class KnownBrowsers {
  private secret: Buffer | undefined;

  constructor(
    private readonly home: string,
    private readonly log: Logger,
  ) {}

  /** Names the browser that brings a cookie; undefined where this user was not in it with this password. */
  idOf(user: string, cookie: string | undefined): string | undefined {
    if (cookie === undefined) return undefined;
    const id = cookie.slice(0, ID_CHARACTERS);
    const expected = this.cookieOf(user, id);
    return expected !== undefined && isSameToken(cookie, expected) ? id : undefined;
  }

  /**
   * What a browser keeps in which a user is in now; it stays the same browser however often he comes.
   * @param id of `idOf`; undefined for one that was not known
   */
  cookieOf(user: string, id = randomBytes(ID_BYTES).toString("base64url")): string | undefined {
    const stored = lookForUser(this.home, user);
    if (stored === undefined || stored === "unreadable") return undefined;
    const { verifier } = stored.key;
    this.secret ??= this.openSecret();
    const mac = createHmac("sha256", this.secret).update(JSON.stringify([user, verifier, id]));
    return `${id}${mac.digest("base64url")}`;
  }

  /** Nobody is kept out for want of it: without a file browsers are known until the next start. */
  private openSecret(): Buffer {
    let [secret, err]: [Buffer | undefined, unknown] = [undefined, undefined];
    try {
      secret = browserKey(this.home);
    } catch (error) {
      err = error;
    }
    if (secret === undefined) this.log.warn({ err }, "the key of known browsers cannot be used");
    return secret ?? randomBytes(32);
  }
}
