"""Add sources, their runs, and syncs, and the source of each document

Revision: 0004
Follows: 0003
"""

import sqlalchemy as sa
from alembic import op


revision = '0004'
down_revision = '0003'
branch_labels = None
depends_on = None


def upgrade() -> None:
    # The column with a document's JSON becomes "body", because "source" now names the document's source.
    op.drop_index('ix_documents_deleted', table_name='documents')
    op.execute('ALTER TABLE documents RENAME COLUMN source TO body')
    op.create_index('ix_documents_deleted', 'documents', ['site_id', 'revision'], unique=False, sqlite_where=sa.text('body IS NULL'), postgresql_where=sa.text('body IS NULL'))
    op.add_column('documents', sa.Column('source', sa.String(length=64), server_default=sa.text("'api'"), nullable=False))
    op.add_column('documents', sa.Column('seen_by', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=True))
    op.create_index('ix_documents_source', 'documents', ['site_id', 'source', 'revision'], unique=False, sqlite_where=sa.text("source <> 'api'"), postgresql_where=sa.text("source <> 'api'"))

    op.create_table('syncs',
    sa.Column('number', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('id', sa.String(length=32), nullable=False),
    sa.Column('site_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('source', sa.String(length=64), nullable=False),
    sa.Column('status', sa.String(length=16), nullable=False),
    sa.Column('seen', sa.Integer(), nullable=False),
    sa.Column('removed', sa.Integer(), nullable=True),
    sa.Column('started_at', sa.BigInteger(), nullable=False),
    sa.Column('called_at', sa.BigInteger(), nullable=False),
    sa.Column('ended_at', sa.BigInteger(), nullable=True),
    sa.PrimaryKeyConstraint('number', name=op.f('pk_syncs')),
    sa.UniqueConstraint('id', name=op.f('uq_syncs_id')),
    sqlite_autoincrement=True
    )
    with op.batch_alter_table('syncs', schema=None) as batch_op:
        batch_op.create_index('ix_syncs_running', ['site_id', 'source'], unique=True, sqlite_where=sa.text("status = 'running'"), postgresql_where=sa.text("status = 'running'"))
        batch_op.create_index(batch_op.f('ix_syncs_status_called_at'), ['status', 'called_at'], unique=False)

    op.create_table('sources',
    sa.Column('id', sa.String(length=32), nullable=False),
    sa.Column('site_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('kind', sa.String(length=16), nullable=False),
    sa.Column('url', sa.String(length=2048), nullable=False),
    sa.Column('schedule', sa.String(length=16), nullable=False),
    sa.Column('include', sa.JSON(), nullable=False),
    sa.Column('exclude', sa.JSON(), nullable=False),
    sa.Column('selectors', sa.JSON(), nullable=False),
    sa.Column('headers', sa.JSON(), nullable=False),
    sa.Column('max_pages', sa.Integer(), nullable=True),
    sa.Column('max_depth', sa.Integer(), nullable=True),
    sa.Column('title_suffix', sa.String(length=1024), nullable=True),
    sa.Column('next_run_at', sa.BigInteger(), nullable=True),
    sa.Column('created_at', sa.BigInteger(), nullable=False),
    sa.Column('updated_at', sa.BigInteger(), nullable=False),
    sa.ForeignKeyConstraint(['site_id'], ['sites.id'], name=op.f('fk_sources_site_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_sources')),
    sa.UniqueConstraint('site_id', 'kind', 'url', name=op.f('uq_sources_site_id_kind_url'))
    )
    with op.batch_alter_table('sources', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_sources_next_run_at'), ['next_run_at'], unique=False)

    op.create_table('source_pages',
    sa.Column('source_id', sa.String(length=32), nullable=False),
    sa.Column('url', sa.String(length=2048), nullable=False),
    sa.Column('document_id', sa.String(length=512), nullable=True),
    sa.Column('reason', sa.String(length=32), nullable=True),
    sa.Column('etag', sa.String(length=512), nullable=True),
    sa.Column('last_modified', sa.String(length=64), nullable=True),
    sa.Column('digest', sa.LargeBinary(), nullable=True),
    sa.Column('text_digest', sa.LargeBinary(), nullable=True),
    sa.Column('title', sa.String(length=1024), nullable=True),
    sa.Column('document_title', sa.String(length=1024), nullable=True),
    sa.Column('links', sa.LargeBinary(), nullable=True),
    sa.Column('fetched_at', sa.BigInteger(), nullable=False),
    sa.ForeignKeyConstraint(['source_id'], ['sources.id'], name=op.f('fk_source_pages_source_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('source_id', 'url', name=op.f('pk_source_pages'))
    )
    with op.batch_alter_table('source_pages', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_source_pages_source_id_document_id'), ['source_id', 'document_id'], unique=False)
        batch_op.create_index(batch_op.f('ix_source_pages_source_id_text_digest'), ['source_id', 'text_digest'], unique=False)

    op.create_table('source_runs',
    sa.Column('id', sa.String(length=32), nullable=False),
    sa.Column('source_id', sa.String(length=32), nullable=False),
    sa.Column('status', sa.String(length=16), nullable=False),
    sa.Column('options', sa.JSON(), nullable=False),
    sa.Column('error', sa.JSON(), nullable=True),
    sa.Column('queued_at', sa.BigInteger(), nullable=False),
    sa.Column('started_at', sa.BigInteger(), nullable=True),
    sa.Column('finished_at', sa.BigInteger(), nullable=True),
    sa.Column('waiting_since', sa.BigInteger(), nullable=False),
    sa.Column('lease', sa.String(length=32), nullable=True),
    sa.Column('lease_until', sa.BigInteger(), nullable=True),
    sa.Column('lapses', sa.Integer(), nullable=False),
    sa.Column('cancelled', sa.Boolean(), nullable=False),
    sa.Column('sync_id', sa.String(length=32), nullable=True),
    sa.Column('seeded', sa.Boolean(), nullable=False),
    sa.Column('complete', sa.Boolean(), nullable=False),
    sa.Column('found', sa.Integer(), nullable=False),
    sa.Column('indexed', sa.Integer(), nullable=False),
    sa.Column('unchanged', sa.Integer(), nullable=False),
    sa.Column('removed', sa.Integer(), nullable=False),
    sa.Column('failed', sa.Integer(), nullable=False),
    sa.Column('skipped', sa.Integer(), nullable=False),
    sa.ForeignKeyConstraint(['source_id'], ['sources.id'], name=op.f('fk_source_runs_source_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_source_runs'))
    )
    with op.batch_alter_table('source_runs', schema=None) as batch_op:
        batch_op.create_index('ix_source_runs_open', ['source_id'], unique=True, sqlite_where=sa.text("status IN ('queued', 'running')"), postgresql_where=sa.text("status IN ('queued', 'running')"))
        batch_op.create_index(batch_op.f('ix_source_runs_source_id_queued_at'), ['source_id', 'queued_at'], unique=False)
        batch_op.create_index(batch_op.f('ix_source_runs_status_waiting_since'), ['status', 'waiting_since'], unique=False)

    op.create_table('run_pages',
    sa.Column('run_id', sa.String(length=32), nullable=False),
    sa.Column('url', sa.String(length=2048), nullable=False),
    sa.Column('position', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('depth', sa.Integer(), nullable=False),
    sa.Column('status', sa.String(length=16), nullable=False),
    sa.Column('reason', sa.String(length=32), nullable=True),
    sa.ForeignKeyConstraint(['run_id'], ['source_runs.id'], name=op.f('fk_run_pages_run_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('run_id', 'url', name=op.f('pk_run_pages'))
    )
    with op.batch_alter_table('run_pages', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_run_pages_run_id_status_position'), ['run_id', 'status', 'position'], unique=False)

    op.create_table('crawl_hosts',
    sa.Column('host', sa.String(length=255), nullable=False),
    sa.Column('next_at', sa.Double(), nullable=False),
    sa.Column('slowness', sa.Double(), nullable=False),
    sa.Column('taken', sa.JSON(), nullable=False),
    sa.PrimaryKeyConstraint('host', name=op.f('pk_crawl_hosts'))
    )
    with op.batch_alter_table('crawl_hosts', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_crawl_hosts_next_at'), ['next_at'], unique=False)


def downgrade() -> None:
    for table in ('crawl_hosts', 'run_pages', 'source_runs', 'source_pages', 'sources', 'syncs'):
        op.drop_table(table)
    op.drop_index('ix_documents_source', table_name='documents')
    op.drop_index('ix_documents_deleted', table_name='documents')
    op.drop_column('documents', 'seen_by')
    op.drop_column('documents', 'source')
    op.execute('ALTER TABLE documents RENAME COLUMN body TO source')
    op.create_index('ix_documents_deleted', 'documents', ['site_id', 'revision'], unique=False, sqlite_where=sa.text('source IS NULL'), postgresql_where=sa.text('source IS NULL'))
