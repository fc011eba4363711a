/** Who may come in: names and passwords against the users' files, and new passwords. */
import { ConsoleError } from "../errors.js";
import {
  MAX_PASSWORD,
  MIN_PASSWORD,
  newPassword,
  openKey,
  PASSWORD_COST,
  type PasswordCost,
  sealKey,
  type SealedKey,
} from "./sealed-key.js";
import type { ConsoleRole } from "./roles.js";
import { type ConsoleUser, readUser, replaceUser } from "./user-files.js";

/** Characters of a name from which on no password may have it in it: hardly any words are without an `a`. */
const MIN_NAME_IN_PASSWORD = 4;

/** Somebody whose password was right. */
export interface KnownUser {
  readonly user: string;
  readonly role: ConsoleRole;
  readonly apiKey: string;
  readonly mustChange: boolean;
}

/** The users of one home. */
export class UserService {
  /** Tried where there is no such user, so that the time of an answer tells nothing. */
  private nobody: Promise<SealedKey> | undefined;

  constructor(
    private readonly home: string,
    private readonly cost: PasswordCost = PASSWORD_COST,
  ) {}

  /**
   * The user behind name and password.
   * @throws WRONG_LOGIN, also where the password was changed, or the user reset or removed meanwhile;
   *   USER_FILE_UNREADABLE
   */
  async enter(name: string, password: string): Promise<KnownUser> {
    return (await this.find(name, password)).known;
  }

  private async find(
    name: string,
    password: string,
  ): Promise<{ readonly known: KnownUser; readonly stored: ConsoleUser }> {
    const stored = readUser(this.home, name);
    if (stored === undefined) {
      this.nobody ??= sealKey("", newPassword(), "", this.cost);
      await openKey(await this.nobody, password, "");
      throw new ConsoleError("WRONG_LOGIN", "no such user");
    }
    const apiKey = await openKey(stored.key, password, name);
    if (apiKey === undefined) throw new ConsoleError("WRONG_LOGIN", "another password");
    this.refuseOther(name, stored);
    const { role, mustChange } = stored;
    return { known: { user: name, role, apiKey, mustChange }, stored };
  }

  /**
   * Gives a user another password; the API key stays.
   * @throws WRONG_LOGIN, also where the user was reset or removed meanwhile; PASSWORD_UNFIT; the system's
   *   fault where the file cannot be written
   */
  async change(
    name: string,
    given: { readonly current: string; readonly next: string; readonly again: string },
  ): Promise<KnownUser> {
    const { current, next, again } = given;
    const { known, stored } = await this.find(name, current);
    const isLongEnough = next.length >= MIN_PASSWORD && next.length <= MAX_PASSWORD;
    const isNamed = name.length >= MIN_NAME_IN_PASSWORD && next.toLowerCase().includes(name);
    const isOwn = next !== current && !isNamed;
    if (!isLongEnough || !isOwn || next !== again) {
      throw new ConsoleError("PASSWORD_UNFIT", "the new password cannot be taken");
    }
    const key = await sealKey(known.apiKey, next, name, this.cost);
    this.refuseOther(name, stored);
    await replaceUser(this.home, { ...stored, key, mustChange: false });
    return { ...known, mustChange: false };
  }

  /**
   * Hashing takes a quarter of a second and more: the password in hand may be the former one by now, and the
   * sessions that it began are ended; its key may be one that a reset has ended.
   * @throws WRONG_LOGIN
   */
  private refuseOther(name: string, stored: ConsoleUser): void {
    if (readUser(this.home, name)?.key.verifier === stored.key.verifier) return;
    throw new ConsoleError("WRONG_LOGIN", "the user is another one by now, or gone");
  }
}
