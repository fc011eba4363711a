/**
 * Several hot wallets: who they are, which may take new payments, and what an operator decided about
 * them; an account in the books for each; a lease for the one watcher that books blocks. A request
 * has no wallet until a nonce is taken for it: its slot says which one pays.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

const WALLET = `
  CREATE TABLE wallet (
    address text PRIMARY KEY CHECK (address ~ '^0x[0-9a-f]{40}$'),
    -- Order of registration. What was posted to asset:hot_wallet belongs to the first one.
    place integer NOT NULL UNIQUE CHECK (place BETWEEN 1 AND 1000),
    status text NOT NULL CHECK (status IN ('active', 'draining', 'retired')),
    since timestamptz NOT NULL DEFAULT now(),
    reason text NOT NULL CHECK (length(reason) BETWEEN 1 AND 1000),
    operator text NOT NULL CHECK (length(operator) BETWEEN 1 AND 100),
    label text NOT NULL CHECK (length(label) <= 64),
    -- First block whose operations are booked as they come; what lay there before is booked once.
    from_height bigint NOT NULL CHECK (from_height >= 0),
    past_booked boolean NOT NULL
  );
  CREATE TABLE wallet_change (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    address text NOT NULL REFERENCES wallet (address),
    former text,
    status text NOT NULL,
    reason text NOT NULL,
    operator text NOT NULL,
    at timestamptz NOT NULL DEFAULT now()
  );
  CREATE INDEX wallet_change_by_wallet ON wallet_change (address, id);
  CREATE TRIGGER wallet_change_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON wallet_change
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
  CREATE TRIGGER wallet_keep BEFORE DELETE OR TRUNCATE ON wallet
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

  -- From active a wallet is drained first: whoever takes nonces has seen it before it is retired.
  CREATE FUNCTION guard_wallet() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF (OLD.address, OLD.place, OLD.label, OLD.from_height)
       IS DISTINCT FROM (NEW.address, NEW.place, NEW.label, NEW.from_height)
       OR (OLD.past_booked AND NOT NEW.past_booked)
       OR NEW.status <> OLD.status AND (OLD.status, NEW.status) NOT IN
          (('active', 'draining'), ('draining', 'active'), ('draining', 'retired'),
           ('retired', 'draining')) THEN
      RAISE EXCEPTION 'wallet % cannot go from % to %', OLD.address, OLD.status, NEW.status
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;
  CREATE TRIGGER wallet_guard BEFORE UPDATE ON wallet
    FOR EACH ROW EXECUTE FUNCTION guard_wallet();

  CREATE FUNCTION record_wallet_change() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    INSERT INTO wallet_change (address, former, status, reason, operator)
    VALUES (NEW.address, CASE WHEN TG_OP = 'UPDATE' THEN OLD.status END, NEW.status, NEW.reason,
            NEW.operator);
    RETURN NULL;
  END $$;
  CREATE TRIGGER wallet_recorded AFTER INSERT OR UPDATE OF status ON wallet
    FOR EACH ROW EXECUTE FUNCTION record_wallet_change();`;

/** In the order of their first nonces: the ledger did not say since when it knew each. */
const KNOWN_WALLETS = `
  INSERT INTO wallet (address, place, status, reason, operator, label, from_height, past_booked)
  SELECT h.wallet, row_number() OVER (ORDER BY first.id NULLS LAST, h.wallet), 'active',
         'the ledger knew it before it had several wallets', 'migration 13', '',
         coalesce((SELECT value::bigint FROM meta WHERE key = 'watched_from_height'), 0), true
    FROM hot_wallet h
    LEFT JOIN LATERAL (SELECT min(s.id) AS id FROM nonce_slot s WHERE s.wallet = h.wallet) AS first
      ON true;

  ALTER TABLE hot_wallet
    ADD CONSTRAINT hot_wallet_is_registered FOREIGN KEY (wallet) REFERENCES wallet (address),
    -- The balance that its worker last saw, for whoever chooses between wallets.
    ADD COLUMN seen_balance_atoken numeric(78,0) CHECK (seen_balance_atoken >= 0),
    ADD COLUMN seen_height bigint CHECK (seen_height >= 0),
    ADD CONSTRAINT hot_wallet_seen_whole
      CHECK ((seen_balance_atoken IS NULL) = (seen_height IS NULL));`;

const ACCOUNTS = `
  CREATE FUNCTION is_wallet_account(code text) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT code ~ '^asset:wallet:0x[0-9a-f]{40}$'
  $$;
  ALTER TABLE posting
    DROP CONSTRAINT posting_debit_check,
    DROP CONSTRAINT posting_credit_check,
    ADD CONSTRAINT posting_debit_check
      CHECK (is_account(debit) OR is_decision_account(debit) OR is_fee_account(debit)
             OR is_wallet_account(debit)),
    ADD CONSTRAINT posting_credit_check
      CHECK (is_account(credit) OR is_decision_account(credit) OR is_fee_account(credit)
             OR is_wallet_account(credit));

  -- What stands on asset:hot_wallet goes to the wallets' own accounts, once: payments to the wallet
  -- whose slot they had, what a recovery or a person booked of a wallet to that one, all else to the
  -- first one.
  CREATE FUNCTION move_former_wallet_account() RETURNS void LANGUAGE plpgsql AS $$
  DECLARE
    entry bigint;
  BEGIN
    IF NOT EXISTS (SELECT 1 FROM wallet)
       OR NOT EXISTS (SELECT 1 FROM posting WHERE debit = 'asset:hot_wallet')
          AND NOT EXISTS (SELECT 1 FROM posting WHERE credit = 'asset:hot_wallet') THEN
      RETURN;
    END IF;
    INSERT INTO journal_entry (kind, idem_key, memo)
    VALUES ('wallet.account', 'former-wallet-account', 'each wallet has an account of its own')
    ON CONFLICT (idem_key) DO NOTHING RETURNING id INTO entry;
    IF entry IS NULL THEN RETURN; END IF;
    INSERT INTO posting (journal_id, place, asset, debit, credit, amount_units)
    SELECT entry, row_number() OVER (ORDER BY address, asset) - 1, asset,
           CASE WHEN sum > 0 THEN 'asset:wallet:' || address ELSE 'asset:hot_wallet' END,
           CASE WHEN sum > 0 THEN 'asset:hot_wallet' ELSE 'asset:wallet:' || address END, abs(sum)
      FROM (
        SELECT coalesce(s.wallet, r.wallet, o.address,
                        (SELECT address FROM wallet ORDER BY place LIMIT 1)) AS address,
               p.asset,
               sum(CASE WHEN p.debit = 'asset:hot_wallet' THEN p.amount_units
                        ELSE -p.amount_units END) AS sum
          FROM posting p JOIN journal_entry e ON e.id = p.journal_id
          LEFT JOIN nonce_slot s ON e.idem_key = 'withdrawal:' || s.withdrawal_id || ':end'
                AND s.outcome IN ('paid', 'reverted', 'cancelled')
          LEFT JOIN recovered_payment r ON e.idem_key = 'recovered-payment:' || r.tx_hash
          LEFT JOIN wallet o
                 ON e.idem_key LIKE 'outflow:%' AND o.address = split_part(e.idem_key, ':', 3)
         WHERE p.debit = 'asset:hot_wallet' OR p.credit = 'asset:hot_wallet'
         GROUP BY 1, 2) AS moved
     WHERE sum <> 0;
  END $$;
  SELECT move_former_wallet_account();`;

/** The column stays for what was written before; nothing writes it any more. */
const REQUESTS = `
  ALTER TABLE withdrawal ALTER COLUMN wallet DROP NOT NULL;
  DROP INDEX withdrawal_open;
  -- Every step of every withdrawal writes an entry into each index that covers its row: what is
  -- settled, which is nearly all, is found by position.
  DROP INDEX withdrawal_status;
  CREATE INDEX withdrawal_open ON withdrawal (status, position)
    WHERE status NOT IN ('settled', 'failed', 'rejected', 'cancelled');
  CREATE INDEX withdrawal_unpaid ON withdrawal (status, position)
    WHERE status IN ('failed', 'rejected', 'cancelled');
  CREATE INDEX withdrawal_waiting ON withdrawal (next_try_at, position) WHERE status = 'accepted';

  -- The last word on which wallet takes a new payment: an active one, and never to one of ours.
  CREATE FUNCTION refuse_slot_of_wallet() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF NOT EXISTS (SELECT 1 FROM nonce_slot s JOIN wallet w ON w.address = s.wallet
                    WHERE s.withdrawal_id = NEW.id AND s.outcome IS NULL
                      AND w.status = 'active') THEN
      RAISE EXCEPTION 'withdrawal % has no nonce of an active wallet', NEW.id
        USING ERRCODE = 'restrict_violation';
    END IF;
    IF EXISTS (SELECT 1 FROM wallet WHERE address = NEW.destination) THEN
      RAISE EXCEPTION 'withdrawal % would pay a wallet of ours', NEW.id
        USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;
  CREATE TRIGGER withdrawal_slot_of_wallet BEFORE UPDATE OF status ON withdrawal
    FOR EACH ROW WHEN (OLD.status = 'accepted' AND NEW.status = 'slotted')
    EXECUTE FUNCTION refuse_slot_of_wallet();`;

const WATCH_LEASE = `
  CREATE TABLE watch_lease (
    name text PRIMARY KEY CHECK (name = 'blocks'),
    lease_owner text,
    lease_epoch bigint NOT NULL DEFAULT 0,
    lease_expires_at timestamptz
  );
  INSERT INTO watch_lease (name) VALUES ('blocks');
  CREATE FUNCTION lease_epoch_only_grows() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF NEW.lease_epoch < OLD.lease_epoch THEN
      RAISE EXCEPTION 'the epoch of a lease only grows' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
  END $$;
  CREATE TRIGGER watch_lease_grows BEFORE UPDATE ON watch_lease
    FOR EACH ROW EXECUTE FUNCTION lease_epoch_only_grows();
  CREATE TRIGGER hot_wallet_lease_grows BEFORE UPDATE ON hot_wallet
    FOR EACH ROW EXECUTE FUNCTION lease_epoch_only_grows();
  CREATE TRIGGER watch_lease_keep BEFORE DELETE OR TRUNCATE ON watch_lease
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();`;

/** A worker of the format before would pay from a draining wallet, and book on the former account. */
const FORMAT = `UPDATE meta SET value = '3' WHERE key = 'format_version' AND value = '2'`;

/** Several wallets, and leases; listed explicitly. */
export class Wallets1760000000013 implements MigrationInterface {
  readonly name = "Wallets1760000000013";

  async up(runner: QueryRunner): Promise<void> {
    for (const part of [WALLET, KNOWN_WALLETS, ACCOUNTS, REQUESTS, WATCH_LEASE, FORMAT]) {
      await runner.query(part);
    }
  }

  /** A ledger never forgets a wallet. */
  async down(): Promise<void> {
    throw new Error("wallets are never dropped by a migration: they may hold coins");
  }
}
