"""The signing key can be sealed with another key-encryption key; nothing else of it changes, and it never goes."""

from django.db import migrations

NARROW = """
DROP TRIGGER ledger_kept ON ledger_ledgerkey;
CREATE TRIGGER ledger_kept BEFORE UPDATE OF id, name, public, made_at OR DELETE ON ledger_ledgerkey
    FOR EACH ROW EXECUTE FUNCTION keep_ledger();
ALTER TABLE ledger_ledgerkey ENABLE ALWAYS TRIGGER ledger_kept;
"""
WIDEN = """
DROP TRIGGER ledger_kept ON ledger_ledgerkey;
CREATE TRIGGER ledger_kept BEFORE UPDATE OR DELETE ON ledger_ledgerkey
    FOR EACH ROW EXECUTE FUNCTION keep_ledger();
ALTER TABLE ledger_ledgerkey ENABLE ALWAYS TRIGGER ledger_kept;
"""


class Migration(migrations.Migration):
    dependencies = [("ledger", "0001_ledger")]
    operations = [migrations.RunSQL(NARROW, WIDEN)]
