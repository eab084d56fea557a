"""Commands: one frozen value per verb, all run by ``command.run(engine, context)`` (`RunContext`).

A command chooses files, lets an engine find the rows that match and write new ones, and builds the transaction. It
knows engines only by the protocol in ``engine.py``, and imports no PySpark.

The public commands are those in ``__all__``. Their ``__module__`` stays the one that defines them: by another name
`typing.get_type_hints` and `inspect.getsource` would look for them in this file.
"""

from anabranch.commands.clustering import ClusterBy
from anabranch.commands.context import NEWEST, Command, RunContext
from anabranch.commands.ddl.add_constraint import AddConstraint
from anabranch.commands.ddl.alter import AddColumns, DropConstraint, NewColumn, SetProperties, UnsetProperties
from anabranch.commands.ddl.alter_protocol import AddFeatureSupport, UpgradeProtocol
from anabranch.commands.ddl.change_column import DROPPED, ChangeColumn, ChangeColumns
from anabranch.commands.ddl.create import Create, Replace
from anabranch.commands.ddl.drop import Drop
from anabranch.commands.ddl.drop_feature import DropFeature
from anabranch.commands.ddl.keys import AddKey, DropKey
from anabranch.commands.ddl.rename_and_drop_columns import DropColumns, RenameColumn
from anabranch.commands.ddl.replace_columns import ReplaceColumns
from anabranch.commands.ddl.sync_identity import SyncIdentity
from anabranch.commands.dml.append import Append
from anabranch.commands.dml.delete import Delete
from anabranch.commands.dml.merge import Merge
from anabranch.commands.dml.new_table import NewTable
from anabranch.commands.dml.update import Update
from anabranch.commands.dml.write import Write
from anabranch.commands.engine import Engine
from anabranch.commands.maintenance.clone import Clone
from anabranch.commands.maintenance.convert import Convert
from anabranch.commands.maintenance.fsck import Fsck
from anabranch.commands.maintenance.generate import Generate
from anabranch.commands.maintenance.optimize import Optimize
from anabranch.commands.maintenance.reorg import Purge
from anabranch.commands.maintenance.restore import Restore
from anabranch.commands.maintenance.upgrade_uniform import UpgradeUniform
from anabranch.commands.maintenance.vacuum import Vacuum
from anabranch.commands.queries.change_feed import ReadChanges
from anabranch.commands.queries.read import Read

__all__ = [
    # how they are called
    "Command",
    "Engine",
    "NEWEST",
    "RunContext",
    # rows
    "Append",
    "Delete",
    "Merge",
    "Update",
    "Write",
    # metadata
    "AddColumns",
    "AddConstraint",
    "AddFeatureSupport",
    "AddKey",
    "ChangeColumn",
    "ChangeColumns",
    "ClusterBy",
    "Create",
    "DROPPED",
    "Drop",
    "DropColumns",
    "DropConstraint",
    "DropFeature",
    "DropKey",
    "NewColumn",
    "NewTable",
    "RenameColumn",
    "Replace",
    "ReplaceColumns",
    "SetProperties",
    "SyncIdentity",
    "UnsetProperties",
    "UpgradeProtocol",
    # maintenance
    "Clone",
    "Convert",
    "Fsck",
    "Generate",
    "Optimize",
    "Purge",
    "Restore",
    "UpgradeUniform",
    "Vacuum",
    # reading
    "Read",
    "ReadChanges",
]
