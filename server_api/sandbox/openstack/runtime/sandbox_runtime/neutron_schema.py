"""usage: python -m sandbox_runtime.neutron_schema DATABASE

Create Neutron's schema in an SQLite file from its models, and stamp the newest revisions: the migrations
themselves do not run on SQLite, for they alter constraints.
"""

import os
import sys
from pathlib import Path

import neutron.db.migration
import sqlalchemy
from alembic.config import Config
from alembic.script import ScriptDirectory
from neutron.db.migration.models import head


def main():
    engine = sqlalchemy.create_engine("sqlite:///" + sys.argv[1])
    head.get_metadata().create_all(engine)
    with engine.begin() as connection:
        connection.execute(
            sqlalchemy.text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
        )
        for revision in _newest_revisions():
            connection.execute(sqlalchemy.text("INSERT INTO alembic_version VALUES (:r)"), {"r": revision})


def _newest_revisions():
    base = Path(neutron.db.migration.__file__).parent / "alembic_migrations"
    folders = sorted({str(file.parent) for file in (base / "versions").rglob("*.py")})
    config = Config()
    config.set_main_option("script_location", str(base))
    config.set_main_option("path_separator", "os")
    config.set_main_option("version_locations", os.pathsep.join(folders))
    return ScriptDirectory.from_config(config).get_heads()


if __name__ == "__main__":
    main()
