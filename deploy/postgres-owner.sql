-- The image's first start runs this once, as the superuser that it made: the ledger's owner, who
-- makes roles and is no superuser, and his database. Then nobody logs in as a superuser any more
-- (a person with the volume still can, by postgres --single).
\set owner_password `cat /run/causeway/config/postgres.password`
CREATE ROLE causeway LOGIN NOSUPERUSER NOCREATEDB CREATEROLE NOREPLICATION NOBYPASSRLS
  PASSWORD :'owner_password';
CREATE DATABASE causeway OWNER causeway TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C.UTF-8';
-- A page out of order costs no more on a disk without heads (docs/adr/0056).
ALTER DATABASE causeway SET random_page_cost = 1.1;
ALTER ROLE postgres NOLOGIN;
